"""The rubrics of kind `claims`, for judges that hold each claim against the golden answer and the tool results."""

from pathlib import Path

from keval.config.load import read_rubric

_HERE = Path(__file__).parent

grounded = read_rubric(_HERE / "grounded.yaml")
uncontradicted = read_rubric(_HERE / "uncontradicted.yaml")
coverage = read_rubric(_HERE / "coverage.yaml")

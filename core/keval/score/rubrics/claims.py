"""The rubrics of kind `claims`, for judges that hold each claim against the golden answer and the tool results."""

from pathlib import Path

from keval.config.load import read_rubric

grounded, uncontradicted, coverage = (
    read_rubric(Path(__file__).with_name(f"{name}.yaml")) for name in ("grounded", "uncontradicted", "coverage")
)

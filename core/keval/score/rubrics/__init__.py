"""The rubrics that judges grade by unless a config names others: k-eval's and `preference`; reading one of your own.

Source: k-eval.md, Metrics. A package ships a rubric by an entry point in the group `keval.rubrics` that leads to a
`Rubric`, which `read_rubric` makes of a YAML file.
"""

from pathlib import Path

from keval.config.load import read_rubric

__all__ = ["completeness", "factual_adherence", "helpfulness_and_clarity", "preference", "read_rubric"]

_HERE = Path(__file__).parent

factual_adherence = read_rubric(_HERE / "factual_adherence.yaml")
completeness = read_rubric(_HERE / "completeness.yaml")
helpfulness_and_clarity = read_rubric(_HERE / "helpfulness_and_clarity.yaml")
preference = read_rubric(_HERE / "preference.yaml")

"""The same evaluation as `keval.yaml`, by Inspect: its grader of questions and answers gives a reason and a grade."""

from inspect_ai import Task, eval as evaluate
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.model import get_model
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import generate, system_message

model = get_model("openai/m", responses_api=False)
task = Task(
    dataset=json_dataset("questions.jsonl", FieldSpec(input="question", target="answer", id="id")),
    solver=[system_message("You are a helpful assistant."), generate()],
    scorer=model_graded_qa(model=model),
)
(log,) = evaluate(task, model=model, max_connections=50, max_samples=50, display="none", log_dir="logs")
assert log.status == "success"

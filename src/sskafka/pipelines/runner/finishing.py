"""The function that a pipeline calls when a run has ended well (`after`)."""

import importlib
import importlib.util
from types import ModuleType

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.runner.errors import PipelineRunError, raised_in_user_code


def finish(pipeline: Pipeline) -> str:
    """Call the function, and return what it returned as text for the user."""
    if pipeline.after is None:
        return ""
    location, name = pipeline.after.location, pipeline.after.function
    function = getattr(_module(pipeline, location), name, None)
    if not callable(function):
        raise PipelineRunError(f"after: {location} has no function {name}")
    try:
        return str(function(pipeline) or "")
    except PipelineRunError:
        raise
    except Exception as error:
        raise PipelineRunError(
            f"after: {location}:{name} has failed: {raised_in_user_code(error)}",
            "the records are written; correct the function and run the same command again",
        ) from error


def _module(pipeline: Pipeline, location: str) -> ModuleType:
    try:
        if not location.endswith(".py"):
            return importlib.import_module(location)
        file = pipeline.path.parent / location
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None, "the file existed when the pipeline was read"
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except Exception as error:  # any error: this runs code of the user
        raise PipelineRunError(f"after: {location} cannot be imported: {raised_in_user_code(error)}") from error
    return module

"""Hooks of the contract test.

Downloads have the media type that somebody gave at upload. The tool would try to read a file of type
YAML or JSON as such, and fall over its bytes; so generated uploads are all octet streams. Uploads of
other types are checked by check_answers.py.
"""

import schemathesis


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Leaves one media type for whole files."""
    raw_schema["paths"]["/files"]["post"]["requestBody"]["content"].pop("*/*")

"""Hooks of the contract test.

Downloads have the media type that the client gave at upload. The tool would try to read a file of type
YAML or JSON as such, and fall over its bytes; so generated uploads are all octet streams. Uploads of
other types are checked by check_answers.py.
"""

import schemathesis

# Their requests bring interim answers (104), and the tool's HTTP client takes the first one for the
# answer. The conformance suite speaks the versions that have them.
WITH_INTERIM_ANSWERS = ["POST /files", "PATCH /uploads/resumable/{sessionId}"]


@schemathesis.serializer("application/offset+octet-stream", "application/partial-upload")
def raw_bytes(context, value):
    """Bytes as they are."""
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Leaves the version of resumable uploads away where it would bring an interim answer."""
    if case.operation.label in WITH_INTERIM_ANSWERS:
        case.headers.pop("Upload-Draft-Interop-Version", None)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Leaves one media type for whole files, and no credentials.

    The tool cannot take a token away again that it sends with each request. AccessMatrixTests try every
    operation without a token and with each scope.
    """
    raw_schema["paths"]["/files"]["post"]["requestBody"]["content"].pop("*/*")
    for item in raw_schema["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict):
                operation.pop("security", None)

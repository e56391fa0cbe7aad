"""Uploads and downloads with the client that OpenAPI Generator generated.

    use_openapi_generator.py CONTRACT SERVER_URL

The package `kedge_pydantic` must be importable.
"""

import sys

import kedge_pydantic as kedge
import kedge_pydantic.models
from operations import check_methods, schema_names
from transfer import run


def refusal(function):
    """Makes a method return the status and problem of a refusal."""

    def method(*arguments, **fields):
        try:
            return function(*arguments, **fields)
        except kedge.ApiException as error:
            return error.status, error.data

    return method


class GeneratedClient:
    """The steps of transfer.py. A refusal is returned as its status and problem."""

    def __init__(self, server):
        client = kedge.ApiClient(kedge.Configuration(host=server))
        self.sessions = kedge.SessionsApi(client)
        self.files = kedge.FilesApi(client)
        self.tus = kedge.TusApi(client)
        self.resumable = kedge.ResumableApi(client)

    def create_session(self, name, size, chunk_size, metadata):
        body = kedge.CreateSessionRequest(
            file_name=name, file_size=size, chunk_size=chunk_size, metadata=metadata
        )
        return self.sessions.create_session(body)

    @refusal
    def get_session(self, session):
        return self.sessions.get_session(session, chunks=kedge.ChunkListing.RANGES)

    @refusal
    def put_chunk(self, session, index, data, content_range, chunk_hash):
        return self.sessions.put_chunk(
            session_id=session,
            index=index,
            body=data,
            content_range=content_range,
            x_chunk_hash=chunk_hash,
        )

    @refusal
    def finalize_session(self, session, digest):
        body = kedge.FinalizeRequest(file_hash_sha256=digest)
        return self.sessions.finalize_session(session, finalize_request=body)

    def get_file_meta(self, file):
        return self.files.get_file_meta(file)

    def download_file(self, file, byte_range=None):
        return bytes(self.files.download_file(file, range=byte_range))

    def create_file(self, data, disposition):
        outcome = self.files.create_file(data, content_disposition=disposition)
        return outcome.actual_instance.remote_file_id

    def create_tus_upload(self, size, data):
        answer = self.tus.create_tus_upload_with_http_info(
            body=data, tus_resumable=kedge.TusVersion.V1, upload_length=size
        )
        return answer.headers["Location"]

    def append_tus_upload(self, upload, offset, data):
        answer = self.tus.append_tus_upload_with_http_info(
            session_id=upload,
            body=data,
            tus_resumable=kedge.TusVersion.V1,
            upload_offset=offset,
        )
        return int(answer.headers["Upload-Offset"])

    def head_tus_upload(self, upload):
        answer = self.tus.head_tus_upload_with_http_info(
            session_id=upload, tus_resumable=kedge.TusVersion.V1
        )
        return int(answer.headers["Upload-Offset"])

    def download_tus_upload(self, upload):
        return bytes(self.tus.download_tus_upload(upload))

    def create_resumable_upload(self, data):
        answer = self.files.create_file_with_http_info(data, upload_complete="?0")
        return answer.headers["Location"]

    def get_resumable_upload(self, upload):
        answer = self.resumable.get_resumable_upload_with_http_info(upload)
        return int(answer.headers["Upload-Offset"])

    def append_resumable_upload(self, upload, offset, data):
        outcome = self.resumable.append_resumable_upload(
            session_id=upload,
            body=data,
            upload_offset=offset,
            upload_complete=kedge.StructuredBoolean.YES,
        )
        return outcome.actual_instance.remote_file_id


def check_models(contract):
    """Fails if a model is of a schema without a name, which the generator names by a number."""
    nameless = {
        name
        for name, model in vars(kedge.models).items()
        if isinstance(model, type) and name not in schema_names(contract)
    }
    if nameless:
        raise AssertionError(f"models of schemas without a name: {sorted(nameless)}")


def main():
    contract, server = sys.argv[1:]
    check_models(contract)
    count = check_methods(
        contract,
        lambda tag, name: getattr(getattr(kedge, tag.capitalize() + "Api"), name),
        lambda parameter: parameter == "self" or parameter.startswith("_"),
    )
    run(GeneratedClient(server))
    print(f"openapi-generator: {count} operations, and files by each protocol")


if __name__ == "__main__":
    main()

"""Uploads and downloads with the client that openapi-python-client generated.

    use_openapi_python_client.py CONTRACT SERVER_URL

The package `kedge_attrs` must be importable.
"""

import importlib
import io
import sys

from kedge_attrs import Client, models
from kedge_attrs.types import UNSET, File
from operations import check_methods
from transfer import run


def module(tag, name):
    return importlib.import_module(f"kedge_attrs.api.{tag}.{name}")


class GeneratedClient:
    """The steps of transfer.py. A refusal is returned as its status and problem."""

    def __init__(self, server):
        self.client = Client(base_url=server)

    def call(self, tag, name, *arguments, **fields):
        method = module(tag, name).sync_detailed
        response = method(*arguments, client=self.client, **fields)
        if response.status_code >= 400:
            return None, (response.status_code.value, response.parsed)
        return response, response.parsed

    def create_session(self, name, size, chunk_size, metadata):
        texts = models.SessionMetadata.from_dict(metadata)
        body = models.CreateSessionRequest(
            file_name=name, file_size=size, chunk_size=chunk_size, metadata=texts
        )
        return self.call("sessions", "create_session", body=body)[1]

    def get_session(self, session):
        ranges = models.ChunkListing.RANGES
        return self.call("sessions", "get_session", session, chunks=ranges)[1]

    def put_chunk(self, session, index, data, content_range, chunk_hash):
        return self.call(
            "sessions",
            "put_chunk",
            session,
            index,
            body=File(payload=io.BytesIO(data)),
            content_range=content_range,
            x_chunk_hash=chunk_hash,
        )[1]

    def finalize_session(self, session, digest):
        body = models.FinalizeRequest(file_hash_sha_256=digest)
        return self.call("sessions", "finalize_session", session, body=body)[1]

    def get_file_meta(self, file):
        return self.call("files", "get_file_meta", file)[1]

    def download_file(self, file, byte_range=UNSET):
        return self.call("files", "download_file", file, range_=byte_range)[1].payload.read()

    def create_file(self, data, disposition):
        body = File(payload=io.BytesIO(data))
        fields = {"body": body, "content_disposition": disposition}
        return self.call("files", "create_file", **fields)[1].remote_file_id

    def create_tus_upload(self, size, data):
        response, _ = self.call(
            "tus",
            "create_tus_upload",
            body=File(payload=io.BytesIO(data)),
            tus_resumable=models.TusVersion.V1,
            upload_length=size,
        )
        return response.headers["Location"]

    def append_tus_upload(self, upload, offset, data):
        response, _ = self.call(
            "tus",
            "append_tus_upload",
            upload,
            body=File(payload=io.BytesIO(data)),
            tus_resumable=models.TusVersion.V1,
            upload_offset=offset,
        )
        return int(response.headers["Upload-Offset"])

    def head_tus_upload(self, upload):
        version = models.TusVersion.V1
        response, _ = self.call("tus", "head_tus_upload", upload, tus_resumable=version)
        return int(response.headers["Upload-Offset"])

    def download_tus_upload(self, upload):
        return self.call("tus", "download_tus_upload", upload)[1].payload.read()

    def create_resumable_upload(self, data):
        body = File(payload=io.BytesIO(data))
        response, _ = self.call("files", "create_file", body=body, upload_complete="?0")
        return response.headers["Location"]

    def get_resumable_upload(self, upload):
        response, _ = self.call("resumable", "get_resumable_upload", upload)
        return int(response.headers["Upload-Offset"])

    def append_resumable_upload(self, upload, offset, data):
        return self.call(
            "resumable",
            "append_resumable_upload",
            upload,
            body=File(payload=io.BytesIO(data)),
            upload_offset=offset,
            upload_complete=models.StructuredBoolean.YES,
        )[1].remote_file_id


def main():
    contract, server = sys.argv[1:]
    count = check_methods(
        contract,
        lambda tag, name: module(tag, name).sync_detailed,
        lambda parameter: parameter == "client",
    )
    run(GeneratedClient(server))
    print(f"openapi-python-client: {count} operations, and files by each protocol")


if __name__ == "__main__":
    main()

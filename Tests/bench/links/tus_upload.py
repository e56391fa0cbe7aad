"""Uploads a file with tuspy: `tus_upload.py URL FILE`. Runs with the Python that has it."""

import sys

from tusclient.client import TusClient

# As in Tests/clients: it goes on where the server says, and rests for a moment after a failure.
uploader = TusClient(sys.argv[1]).uploader(
    sys.argv[2], chunk_size=16 << 20, retries=1000, retry_delay=0.05, metadata={"filename": "file"}
)
uploader.upload()
print(uploader.url)

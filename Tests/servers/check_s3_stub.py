"""Proves that the stand-in for S3 takes what a client of the real one sends, and refuses what S3 refuses.

    check_s3_stub.py        run with the Python that has boto3
"""

import base64
import hashlib
import os
import sys
import threading
import urllib.error
import urllib.request
from typing import Any

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from object_stores import StubServer

PART = 64 << 10


def client(stub: StubServer, **options: Any) -> BaseClient:
    """A client that sends each request once."""
    settings = {
        "retries": {"total_max_attempts": 1}, "read_timeout": 1, "signature_version": "s3v4",
        "request_checksum_calculation": "when_required", "s3": {"addressing_style": "path"},
    }
    keys = {"aws_access_key_id": stub.access_key, "aws_secret_access_key": stub.secret_key}
    keys |= {name: options.pop(name) for name in list(options) if name.startswith("aws_")}
    endpoint = options.pop("endpoint_url", stub.endpoint)
    return boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", config=Config(**(settings | options)),
        **keys)


def refused(code: str, call: Any, **arguments: Any) -> None:
    """The call is refused so, and not otherwise."""
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, f"{error} instead of {code}"
    else:
        raise AssertionError(f"taken instead of {code}")


def broken_off(call: Any, **arguments: Any) -> None:
    """The call gets no answer."""
    try:
        call(**arguments)
    except BotoCoreError:
        return
    raise AssertionError("answered")


def checksum(data: bytes) -> str:
    """As S3 wants it."""
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


class Check:
    """The checks; each starts with an empty bucket."""

    def __init__(self, stub: StubServer) -> None:
        self.stub = stub
        self.s3 = client(stub)
        self.place = {"Bucket": stub.bucket, "Key": "a key/with ü+%&~.txt"}

    def objects(self) -> None:
        """Put, conditions, ranges, metadata, delete."""
        data = os.urandom(200_000)
        put = self.s3.put_object(
            **self.place, Body=data, ContentType="text/x", Metadata={"a": "b"},
            ChecksumSHA256=checksum(data))
        assert put["ChecksumSHA256"] == checksum(data)
        assert hashlib.md5(data).hexdigest() not in put["ETag"]
        got = self.s3.get_object(**self.place)
        assert (got["Body"].read(), got["ContentType"], got["Metadata"]) == (data, "text/x", {"a": "b"})
        part = self.s3.get_object(**self.place, Range="bytes=1000-1999", IfMatch=put["ETag"])
        assert part["ContentRange"] == "bytes 1000-1999/200000" and part["Body"].read() == data[1000:2000]
        assert self.s3.get_object(**self.place, Range="bytes=-5")["Body"].read() == data[-5:]
        assert self.s3.head_object(**self.place)["ContentLength"] == 200_000
        refused("InvalidRange", self.s3.get_object, **self.place, Range="bytes=200000-")
        refused("PreconditionFailed", self.s3.get_object, **self.place, IfMatch='"x"')
        refused("304", self.s3.get_object, **self.place, IfNoneMatch=put["ETag"])
        refused("PreconditionFailed", self.s3.put_object, **self.place, Body=b"", IfNoneMatch="*")
        refused("BadDigest", self.s3.put_object, **self.place, Body=b"x", ChecksumSHA256=checksum(b"y"))
        refused("NoSuchKey", self.s3.get_object, Bucket=self.stub.bucket, Key="other")
        refused("NoSuchBucket", self.s3.get_object, Bucket="other", Key="other")
        self.s3.delete_object(**self.place)
        self.s3.delete_object(**self.place)
        self.s3.put_object(**self.place, Body=b"")
        assert self.s3.get_object(**self.place)["Body"].read() == b""
        self.s3.delete_objects(
            Bucket=self.stub.bucket, Delete={"Objects": [{"Key": self.place["Key"]}]},
            ChecksumAlgorithm="SHA256")

    def signatures(self) -> None:
        """Keys, virtual hosts, presigned addresses."""
        refused("SignatureDoesNotMatch", client(self.stub, aws_secret_access_key="x").list_buckets)
        refused("InvalidAccessKeyId", client(self.stub, aws_access_key_id="x").list_buckets)
        self.s3.put_object(**self.place, Body=b"hello")
        virtual = client(
            self.stub, s3={"addressing_style": "virtual"},
            endpoint_url=f"http://localhost:{self.stub.port}")
        url = virtual.generate_presigned_url("get_object", Params=self.place)
        # Not every system knows that names below localhost are this machine.
        _, _, host, path = url.split("/", 3)
        request = urllib.request.Request(f"{self.stub.endpoint}/{path}", headers={"Host": host})
        assert host.startswith(f"{self.stub.bucket}.")
        with urllib.request.urlopen(request) as answer:
            assert answer.read() == b"hello"
        arguments = self.place | {"ResponseContentDisposition": "attachment"}
        url = self.s3.generate_presigned_url("get_object", Params=arguments, ExpiresIn=60)
        with urllib.request.urlopen(url) as answer:
            assert answer.read() == b"hello"
            assert answer.headers["content-disposition"] == "attachment"
        try:
            urllib.request.urlopen(url.replace("attachment", "inline"))
            raise AssertionError("a changed address was taken")
        except urllib.error.HTTPError as error:
            assert error.code == 403
        self.s3.delete_object(**self.place)

    def uploads(self) -> None:
        """Parts in any order, replaced, listed in pages, completed, aborted."""
        begun = self.s3.create_multipart_upload(**self.place, ChecksumAlgorithm="SHA256")
        upload = self.place | {"UploadId": begun["UploadId"]}
        data = [os.urandom(PART) for _ in range(5)] + [b"end"]
        parts = []
        for number in (6, 3, 1, 2, 5, 4, 3):
            body = data[number - 1]
            self.s3.upload_part(**upload, PartNumber=number, Body=b"old", ChecksumSHA256=checksum(b"old"))
            answer = self.s3.upload_part(
                **upload, PartNumber=number, Body=body, ChecksumSHA256=checksum(body))
            parts = [part for part in parts if part["PartNumber"] != number]
            parts.append({
                "PartNumber": number, "ETag": answer["ETag"], "ChecksumSHA256": checksum(body)})
        parts.sort(key=lambda part: part["PartNumber"])
        listed = [
            part for page in self.s3.get_paginator("list_parts").paginate(**upload)
            for part in page["Parts"]]
        assert [part["Size"] for part in listed] == [len(part) for part in data]
        assert [part["ChecksumSHA256"] for part in listed] == [checksum(part) for part in data]
        complete = self.s3.complete_multipart_upload
        refused("InvalidRequest", self.s3.upload_part, **upload, PartNumber=1, Body=b"x")
        for code, wrong in (
            ("InvalidPartOrder", parts[::-1]), ("InvalidPart", [parts[0] | {"ETag": "x"}]),
            ("InvalidRequest", [{"PartNumber": 1, "ETag": parts[0]["ETag"]}]),
            ("EntityTooSmall", [*parts[:5], parts[5], parts[5] | {"PartNumber": 7}]),
        ):
            if code == "EntityTooSmall":
                answer = self.s3.upload_part(
                    **upload, PartNumber=7, Body=b"end", ChecksumSHA256=checksum(b"end"))
                wrong[-1] = wrong[-1] | {"ETag": answer["ETag"]}
            refused(code, complete, **upload, MultipartUpload={"Parts": wrong})
        complete(**upload, MultipartUpload={"Parts": parts})
        refused("NoSuchUpload", complete, **upload, MultipartUpload={"Parts": parts})
        whole = b"".join(data)
        assert self.s3.get_object(**self.place)["Body"].read() == whole
        middle = self.s3.get_object(**self.place, Range=f"bytes={PART - 7}-{3 * PART + 6}")
        assert middle["Body"].read() == whole[PART - 7:3 * PART + 7]
        self.s3.delete_object(**self.place)

    def damage(self) -> None:
        """A flipped bit of an object or of a part changes its bytes and nothing that is said of them."""
        put = self.s3.put_object(**self.place, Body=b"1234")
        self.stub.damage(self.place["Key"], 2)
        got = self.s3.get_object(**self.place, IfMatch=put["ETag"])
        assert got["Body"].read() == b"12" + bytes([ord("3") ^ 1]) + b"4"
        begun = self.s3.create_multipart_upload(**self.place, ChecksumAlgorithm="SHA256")
        upload = self.place | {"UploadId": begun["UploadId"]}
        parts = []
        for number, body in ((1, bytes(PART)), (2, b"end")):
            answer = self.s3.upload_part(
                **upload, PartNumber=number, Body=body, ChecksumSHA256=checksum(body))
            parts.append({
                "PartNumber": number, "ETag": answer["ETag"], "ChecksumSHA256": checksum(body)})
        self.stub.damage(self.place["Key"], 1, part=2)
        self.s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        assert self.s3.get_object(**self.place)["Body"].read() == bytes(PART) + b"eod"
        self.s3.delete_object(**self.place)

    def copies(self) -> None:
        """Parts that are ranges of an object."""
        data = os.urandom(3 * PART)
        put = self.s3.put_object(**self.place, Body=data)
        target = {"Bucket": self.stub.bucket, "Key": "copy"}
        begun = self.s3.create_multipart_upload(**target, ChecksumAlgorithm="SHA256")
        upload = target | {"UploadId": begun["UploadId"]}
        parts = []
        for number, (first, last) in enumerate([(7, 7 + PART), (0, 2 * PART), (5, 5)], 1):
            answer = self.s3.upload_part_copy(
                **upload, PartNumber=number, CopySource=self.place, CopySourceIfMatch=put["ETag"],
                CopySourceRange=f"bytes={first}-{last}")["CopyPartResult"]
            assert answer["ChecksumSHA256"] == checksum(data[first:last + 1])
            parts.append({
                "PartNumber": number, "ETag": answer["ETag"],
                "ChecksumSHA256": answer["ChecksumSHA256"]})
        copy = self.s3.upload_part_copy
        asked = upload | {"PartNumber": 1, "CopySource": self.place}
        refused("PreconditionFailed", copy, **asked, CopySourceIfMatch='"x"')
        refused("InvalidArgument", copy, **asked, CopySourceRange=f"bytes=0-{3 * PART}")
        refused("NoSuchKey", copy, **asked | {"CopySource": self.place | {"Key": "other"}})
        refused("NoSuchUpload", copy, **asked | {"UploadId": "other"})
        refused("NotImplemented", self.s3.copy_object, **target, CopySource=self.place)
        self.s3.delete_object(**self.place)
        self.s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        got = self.s3.get_object(**target)["Body"].read()
        assert got == data[7:8 + PART] + data[:2 * PART + 1] + data[5:6]
        self.s3.delete_object(**target)

    def lists(self) -> None:
        """Objects and uploads in pages of three."""
        keys = [f"d{number % 3}/{number:02} é" for number in range(10)]
        for key in keys:
            self.s3.put_object(Bucket=self.stub.bucket, Key=key, Body=b"x")
            self.s3.create_multipart_upload(Bucket=self.stub.bucket, Key=key)
        bucket = {"Bucket": self.stub.bucket}
        pages = list(self.s3.get_paginator("list_objects_v2").paginate(**bucket))
        assert [entry["Key"] for page in pages for entry in page["Contents"]] == sorted(keys)
        assert len(pages) == 4
        pages = list(self.s3.get_paginator("list_objects_v2").paginate(**bucket, Delimiter="/"))
        assert [entry["Prefix"] for page in pages for entry in page["CommonPrefixes"]] == [
            "d0/", "d1/", "d2/"]
        pages = list(self.s3.get_paginator("list_multipart_uploads").paginate(**bucket, Prefix="d"))
        found = [entry for page in pages for entry in page["Uploads"]]
        assert [entry["Key"] for entry in found] == sorted(keys)
        for entry in found:
            self.s3.abort_multipart_upload(**bucket, Key=entry["Key"], UploadId=entry["UploadId"])
            self.s3.delete_object(**bucket, Key=entry["Key"])

    def faults(self) -> None:
        """Each thing that it can do wrong."""
        put = self.s3.put_object
        def rule(action: str, **more: Any) -> None:
            self.stub.fail({"operation": "PutObject", "action": action, "times": 1, **more})

        rule("status", after=1)
        put(**self.place, Body=b"1")
        refused("SlowDown", put, **self.place, Body=b"2")
        for action in ("dropUnread", "dropUndone"):
            rule(action)
            broken_off(put, **self.place, Body=b"2")
        rule("hang", seconds_each=5)
        broken_off(put, **self.place, Body=b"1")
        assert self.s3.get_object(**self.place)["Body"].read() == b"1"
        rule("dropDone")
        broken_off(put, **self.place, Body=b"lost answer")
        assert self.s3.get_object(**self.place)["Body"].read() == b"lost answer"
        rule("skewedClock", seconds_each=3600)
        refused("RequestTimeTooSkewed", put, **self.place, Body=b"3")
        rule("wrongChecksum")
        assert put(**self.place, Body=b"3")["ChecksumSHA256"] != checksum(b"3")
        rule("errorInOK", code="InternalError")
        refused("InternalError", put, **self.place, Body=b"4")
        self.stub.fail({"operation": "GetObject", "action": "cut", "byte_count": 2, "seconds": 60})
        self.s3.put_object(**self.place, Body=b"12345")
        broken_off(lambda: self.s3.get_object(**self.place)["Body"].read())
        self.stub.heal()
        assert self.s3.get_object(**self.place)["Body"].read() == b"12345"
        assert self.stub.state()["faults"]["dropDone"] == 1
        self.s3.delete_object(**self.place)

    def many_at_once(self) -> None:
        """Writers side by side, each with its own bytes."""
        data = [os.urandom(1 << 20) for _ in range(16)]
        def work(number: int) -> None:
            own = client(self.stub)
            own.put_object(Bucket=self.stub.bucket, Key=str(number), Body=data[number])
            assert own.get_object(Bucket=self.stub.bucket, Key=str(number))["Body"].read() == data[number]
            own.delete_object(Bucket=self.stub.bucket, Key=str(number))
            done.append(number)

        done: list[int] = []
        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 16


def main() -> int:
    """Runs all checks."""
    stub = StubServer(min_part_byte_count=PART, page_size=3)
    try:
        check = Check(stub)
        for part in (
            check.objects, check.signatures, check.uploads, check.damage, check.copies, check.lists,
            check.faults, check.many_at_once,
        ):
            part()
            assert stub.left() == [], f"{part.__name__} left {stub.left()}"
        state = stub.state()
    finally:
        stub.stop()
    print(f"S3 stand-in: as strict as it should be ({sum(state['requests'].values())} requests)")
    return 0


if __name__ == "__main__":
    sys.exit(main())

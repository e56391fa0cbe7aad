"""Signature Version 4 as a strict server checks it, in a header or in a presigned address.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
"""

import dataclasses
import datetime
import hashlib
import hmac
import re
import urllib.parse

from s3_messages import Request, S3Error

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
LARGEST_SKEW = datetime.timedelta(minutes=15)
TIME_FORMAT = "%Y%m%dT%H%M%SZ"


@dataclasses.dataclass
class Key:
    """Who may ask, and where."""

    access_key: str
    secret_key: str
    region: str


@dataclasses.dataclass
class Claim:
    """The signature of a request and its parameters, as the request has them."""

    credential: list[str]
    signed_headers: list[str]
    signature: str
    time: str
    payload: str


def encoded(value: str, *, keeps_slash: bool = False) -> str:
    """Percent-encoding with the only set of plain characters that the signature knows."""
    return urllib.parse.quote(value, safe="/-_.~" if keeps_slash else "-_.~")


def check(request: Request, key: Key, now: datetime.datetime) -> str:
    """Raises an error unless the request is signed with the key for this moment.

    Returns what the body must have as its SHA-256 in hexadecimal, or `UNSIGNED`.
    """
    is_presigned = "X-Amz-Signature" in request.query
    claim = presigned_claim(request) if is_presigned else header_claim(request)
    check_scope(claim, key)
    try:
        time = datetime.datetime.strptime(claim.time, TIME_FORMAT).replace(tzinfo=datetime.UTC)
    except ValueError as error:
        raise S3Error(403, "AccessDenied", "no valid time") from error
    if is_presigned:
        check_lifetime(request, time, now)
    elif abs(now - time) > LARGEST_SKEW:
        raise S3Error(403, "RequestTimeTooSkewed")
    check_signed_headers(request, claim)
    if not hmac.compare_digest(signature(request, claim, key), claim.signature):
        raise S3Error(403, "SignatureDoesNotMatch")
    return claim.payload


def header_claim(request: Request) -> Claim:
    """From the Authorization header."""
    value = request.headers.get("authorization", "")
    if not value:
        raise S3Error(403, "AccessDenied", "anonymous")
    match = re.fullmatch(
        rf"{ALGORITHM} Credential=([^, ]+), ?SignedHeaders=([^, ]+), ?Signature=([0-9a-f]{{64}})", value)
    if match is None:
        raise S3Error(400, "AuthorizationHeaderMalformed")
    payload = request.headers.get("x-amz-content-sha256", "")
    if payload != UNSIGNED and not re.fullmatch("[0-9a-f]{64}", payload):
        raise S3Error(400, "InvalidRequest", f"x-amz-content-sha256: {payload or 'missing'}")
    return Claim(
        match[1].split("/"), match[2].split(";"), match[3], request.headers.get("x-amz-date", ""),
        payload)


def presigned_claim(request: Request) -> Claim:
    """From the query."""
    if request.query.get("X-Amz-Algorithm") != ALGORITHM:
        raise S3Error(400, "AuthorizationQueryParametersError")
    return Claim(
        request.query.get("X-Amz-Credential", "").split("/"),
        request.query.get("X-Amz-SignedHeaders", "").split(";"),
        request.query["X-Amz-Signature"], request.query.get("X-Amz-Date", ""), UNSIGNED)


def check_lifetime(request: Request, time: datetime.datetime, now: datetime.datetime) -> None:
    """Presigned addresses say themselves how long they are good."""
    expires = request.query.get("X-Amz-Expires", "")
    if not re.fullmatch("[0-9]{1,6}", expires) or not 1 <= int(expires) <= 604_800:
        raise S3Error(400, "AuthorizationQueryParametersError", "X-Amz-Expires")
    if now > time + datetime.timedelta(seconds=int(expires)):
        raise S3Error(403, "AccessDenied", "Request has expired")
    if time > now + LARGEST_SKEW:
        raise S3Error(403, "AccessDenied", "Request is not yet valid")


def check_scope(claim: Claim, key: Key) -> None:
    """The key is known, and the signature is for this region and service."""
    if len(claim.credential) != 5:
        raise S3Error(400, "AuthorizationHeaderMalformed", "credential")
    access_key, day, region, service, end = claim.credential
    if access_key != key.access_key:
        raise S3Error(403, "InvalidAccessKeyId")
    if (region, service, end) != (key.region, "s3", "aws4_request") or not claim.time.startswith(day):
        raise S3Error(400, "AuthorizationHeaderMalformed", "scope")


def check_signed_headers(request: Request, claim: Claim) -> None:
    """Nothing that changes the meaning of a request may be left out of its signature."""
    needed = {name for name in request.headers if name.startswith("x-amz-")} | {"host"}
    missing = sorted(needed - set(claim.signed_headers))
    if missing:
        raise S3Error(403, "AccessDenied", f"headers that are not signed: {' '.join(missing)}")
    if claim.signed_headers != sorted(claim.signed_headers):
        raise S3Error(403, "SignatureDoesNotMatch", "signed headers are not sorted")


def signature(request: Request, claim: Claim, key: Key) -> str:
    """Computes the signature that the request must have."""
    pairs = sorted(
        (encoded(name), encoded(value)) for name, value in request.query_pairs
        if name != "X-Amz-Signature")
    headers = [
        f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in claim.signed_headers]
    canonical = "\n".join((
        request.method,
        encoded(urllib.parse.unquote(request.raw_path), keeps_slash=True),
        "&".join(f"{name}={value}" for name, value in pairs),
        "".join(headers),
        ";".join(claim.signed_headers),
        claim.payload,
    ))
    scope = "/".join(claim.credential[1:])
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = f"{ALGORITHM}\n{claim.time}\n{scope}\n{digest}"
    secret = f"AWS4{key.secret_key}".encode()
    for part in claim.credential[1:]:
        secret = hmac.digest(secret, part.encode(), "sha256")
    return hmac.new(secret, to_sign.encode(), "sha256").hexdigest()

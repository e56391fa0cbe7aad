internal import KedgeHash
package import KedgeModel
internal import KedgeSecrets

/// Signs requests with AWS Signature Version 4.
///
/// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
package struct RequestSigner: Sendable {
    private static let algorithm = "AWS4-HMAC-SHA256"

    let credentials: S3Credentials
    let region: String
    var service = "s3"

    package init(
        credentials: S3Credentials,
        region: String,
        service: String = "s3"
    ) {
        self.credentials = credentials
        self.region = region
        self.service = service
    }

    /// Returns the value of the `Authorization` field.
    package func authorization(for request: SignableRequest, at time: SigningTime) -> String {
        let credential = "\(credentials.accessKeyID)/\(scope(at: time))"
        return "\(Self.algorithm) Credential=\(credential), "
            + "SignedHeaders=\(request.signedFields), Signature=\(signature(of: request, at: time))"
    }

    /// Returns the query of a presigned URL.
    package func presignedQuery(
        for request: SignableRequest, at time: SigningTime, expiresAfterSeconds: Int
    ) -> String {
        var request = request
        request.query += [
            QueryItem("X-Amz-Algorithm", Self.algorithm),
            QueryItem("X-Amz-Credential", "\(credentials.accessKeyID)/\(scope(at: time))"),
            QueryItem("X-Amz-Date", time.text),
            QueryItem("X-Amz-Expires", String(expiresAfterSeconds)),
            QueryItem("X-Amz-SignedHeaders", request.signedFields),
        ]
        if let token = credentials.sessionToken {
            request.query.append(QueryItem("X-Amz-Security-Token", token.text))
        }
        return "\(request.canonicalQuery)&X-Amz-Signature=\(signature(of: request, at: time))"
    }

    private func scope(at time: SigningTime) -> String {
        "\(time.day)/\(region)/\(service)/aws4_request"
    }

    private func signature(of request: SignableRequest, at time: SigningTime) -> String {
        let hash = SHA256Hasher.digest(of: Array(request.canonicalText.utf8)).hex
        let text = [Self.algorithm, time.text, scope(at: time), hash].joined(separator: "\n")
        var key = Array("AWS4\(credentials.secretAccessKey.text)".utf8)
        for part in [time.day, region, service, "aws4_request"] {
            key = HMACSHA256(key: key).code(of: Array(part.utf8))
        }
        return Hex.encode(HMACSHA256(key: key).code(of: Array(text.utf8)))
    }
}

/// A time in the format of signatures.
package struct SigningTime: Hashable, Sendable {
    /// For example `20130524T000000Z`.
    let text: String

    package init(_ time: Timestamp) {
        text = time.description.prefix(19).filter { $0 != "-" && $0 != ":" } + "Z"
    }

    /// For example `20130524`.
    var day: String { String(text.prefix(8)) }
}

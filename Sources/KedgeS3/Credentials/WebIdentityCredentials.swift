internal import HTTPTypes
internal import KedgeModel

/// Credentials from AWS's token service, in exchange for a token in a file, as on Kubernetes
/// (`AWS_WEB_IDENTITY_TOKEN_FILE`, `AWS_ROLE_ARN`).
package struct WebIdentityCredentials: CredentialsSource {
    let environment: [String: String]
    let region: String
    let files: SmallFiles
    let endpoint: CredentialsEndpointClient

    package func load() async throws -> S3Credentials? {
        guard let path = environment["AWS_WEB_IDENTITY_TOKEN_FILE"],
            let role = environment["AWS_ROLE_ARN"]
        else { return nil }
        guard let token = try await files.text(at: path) else {
            throw S3SetupError("the file in AWS_WEB_IDENTITY_TOKEN_FILE does not exist")
        }
        let body = [
            ("Action", "AssumeRoleWithWebIdentity"), ("Version", "2011-06-15"),
            ("RoleArn", role),
            ("RoleSessionName", environment["AWS_ROLE_SESSION_NAME"] ?? "kedge"),
            ("WebIdentityToken", token.filter { !$0.isWhitespace }),
        ].map { "\($0.0)=\(PercentEncoding.encode($0.1))" }.joined(separator: "&")
        let answer = try await endpoint.text(
            .post, environment["AWS_ENDPOINT_URL_STS"] ?? "https://sts.\(region).amazonaws.com/",
            fields: [("Content-Type", "application/x-www-form-urlencoded")], body: body,
            timeout: .seconds(30))
        return try Self.credentials(in: answer)
    }

    package static func credentials(in answer: String) throws -> S3Credentials {
        guard let found = XMLElement(document: Array(answer.utf8))?.first("Credentials"),
            let id = found.text(of: "AccessKeyId"), let secret = found.text(of: "SecretAccessKey"),
            let token = found.text(of: "SessionToken"),
            let end = found.text(of: "Expiration").flatMap({ Timestamp($0) })
        else { throw S3SetupError("the token service's response has no credentials") }
        return S3Credentials(
            accessKeyID: id, secretAccessKey: Secret(secret), sessionToken: Secret(token),
            expiresAt: end)
    }
}

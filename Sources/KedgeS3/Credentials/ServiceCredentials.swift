internal import HTTPTypes
internal import KedgeModel

/// Credentials from the endpoint of a container platform (`AWS_CONTAINER_CREDENTIALS_FULL_URI` or
/// `..._RELATIVE_URI`).
struct ContainerCredentials: CredentialsSource {
    /// Hosts that may be asked over plain HTTP. On the way to other hosts the secrets could be
    /// read.
    private static let plainHosts: Set = [
        "127.0.0.1", "localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]",
    ]

    let environment: [String: String]
    let files: SmallFiles
    let endpoint: CredentialsEndpointClient

    func load() async throws -> S3Credentials? {
        guard let url = try url else { return nil }
        var fields: [(String, String)] = []
        if let token = try await token { fields.append(("Authorization", token)) }
        return try ServiceAnswer.credentials(in: await endpoint.text(.get, url, fields: fields))
    }

    private var url: String? {
        get throws {
            if let path = environment["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] {
                // Anything else could change the host that gets the request.
                guard path.hasPrefix("/") else {
                    throw S3SetupError(
                        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with /")
                }
                return "http://169.254.170.2\(path)"
            }
            guard let url = environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] else { return nil }
            guard url.hasPrefix("https://") || S3Endpoint(url).map({ isNear($0) }) == true else {
                throw S3SetupError(
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI names another host over plain HTTP")
            }
            return url
        }
    }

    private func isNear(_ endpoint: S3Endpoint) -> Bool {
        Self.plainHosts.contains(endpoint.hostWithoutPort)
    }

    private var token: String? {
        get async throws {
            if let path = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] {
                return try await files.text(at: path)?.filter { !$0.isNewline }
            }
            return environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
        }
    }
}

/// Credentials of the instance's role, from the instance metadata service, version 2.
struct InstanceCredentials: CredentialsSource {
    let environment: [String: String]
    let endpoint: CredentialsEndpointClient

    func load() async throws -> S3Credentials? {
        guard environment["AWS_EC2_METADATA_DISABLED"]?.lowercased() != "true" else { return nil }
        let base =
            environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] ?? "http://169.254.169.254"
        let token = try await endpoint.text(
            .put, "\(base)/latest/api/token",
            fields: [("X-aws-ec2-metadata-token-ttl-seconds", "21600")])
        let fields = [("X-aws-ec2-metadata-token", token)]
        let roles = "\(base)/latest/meta-data/iam/security-credentials/"
        let names = try await endpoint.text(.get, roles, fields: fields)
        guard let role = names.split(whereSeparator: \.isNewline).first else { return nil }
        return try ServiceAnswer.credentials(
            in: await endpoint.text(.get, "\(roles)\(role)", fields: fields))
    }
}

/// Reads the answer format of both services.
package enum ServiceAnswer {
    package static func credentials(in answer: String) throws -> S3Credentials {
        guard let members = JSONMembers.read(answer), let id = members["AccessKeyId"],
            let secret = members["SecretAccessKey"], let token = members["Token"]
        else { throw S3SetupError("the response of a credentials service has no credentials") }
        return S3Credentials(
            accessKeyID: id, secretAccessKey: Secret(secret), sessionToken: Secret(token),
            expiresAt: members["Expiration"].flatMap { Timestamp($0) })
    }
}

/// Credentials in `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
package struct EnvironmentCredentials: CredentialsSource {
    let environment: [String: String]

    package init(
        environment: [String: String]
    ) {
        self.environment = environment
    }

    package func load() async throws -> S3Credentials? {
        guard let id = environment["AWS_ACCESS_KEY_ID"], !id.isEmpty else { return nil }
        guard let secret = environment["AWS_SECRET_ACCESS_KEY"], !secret.isEmpty else {
            throw S3SetupError("AWS_ACCESS_KEY_ID is set, AWS_SECRET_ACCESS_KEY is not")
        }
        let token = environment["AWS_SESSION_TOKEN"].flatMap { $0.isEmpty ? nil : Secret($0) }
        return S3Credentials(
            accessKeyID: id, secretAccessKey: Secret(secret), sessionToken: token)
    }
}

/// Credentials from the shared file of AWS tools, `~/.aws/credentials`, read each time.
///
/// `AWS_PROFILE` selects the section, `AWS_SHARED_CREDENTIALS_FILE` another file.
package struct SharedFileCredentials: CredentialsSource {
    let environment: [String: String]
    let files: SmallFiles

    package init(
        environment: [String: String],
        files: SmallFiles
    ) {
        self.environment = environment
        self.files = files
    }

    package func load() async throws -> S3Credentials? {
        guard let path, let text = try await files.text(at: path) else {
            guard environment["AWS_SHARED_CREDENTIALS_FILE"] == nil else {
                throw S3SetupError("the file in AWS_SHARED_CREDENTIALS_FILE does not exist")
            }
            return nil
        }
        let profile = environment["AWS_PROFILE"] ?? "default"
        let values = Self.values(of: profile, in: text)
        guard let id = values["aws_access_key_id"], let secret = values["aws_secret_access_key"]
        else {
            guard environment["AWS_PROFILE"] == nil else {
                throw S3SetupError("the profile in AWS_PROFILE has no keys")
            }
            return nil
        }
        return S3Credentials(
            accessKeyID: id, secretAccessKey: Secret(secret),
            sessionToken: values["aws_session_token"].map { Secret($0) })
    }

    private var path: String? {
        if let path = environment["AWS_SHARED_CREDENTIALS_FILE"] { return path }
        return environment["HOME"].map { "\($0)/.aws/credentials" }
    }

    /// Reads the `name = value` lines of one section.
    static func values(of profile: String, in text: String) -> [String: String] {
        var values: [String: String] = [:]
        var isInSection = false
        for line in text.split(whereSeparator: \.isNewline) {
            let line = trimmed(line)
            if line.hasPrefix("[") {
                isInSection = line.hasSuffix("]") && trimmed(line.dropFirst().dropLast()) == profile
                continue
            }
            guard isInSection, !line.hasPrefix("#"), !line.hasPrefix(";"),
                let equals = line.firstIndex(of: "=")
            else { continue }
            values[trimmed(line[..<equals]).lowercased()] =
                trimmed(line[line.index(after: equals)...])
        }
        return values
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        String(text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
    }
}

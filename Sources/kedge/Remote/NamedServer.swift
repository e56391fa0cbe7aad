internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// Warns on standard error if others can read the server's token file.
func warnOfPublicToken(of server: NamedServer) {
    guard let file = server.publicTokenFile else { return }
    StandardError.write(
        "kedge: warning: others can read the token file \(printable(file)); run: chmod 600"
            + " \(printable(ShellText.quoted(file)))\n")
}

/// A server of the settings, or one that is only a URL.
struct NamedServer: Sendable {
    /// Name in the settings; nil for a URL that is not in them.
    var name: String?
    var url: String
    var token: String?
    /// File whose first line is the token.
    var tokenFile: String?
    /// Command of a shell whose first line of output is the token.
    var tokenCommand: String?
    var caFile: String?
    var clientCertificate: String?
    var clientKey: String?
    var proxy: String?

    /// Name of the server in messages.
    var place: String { name.map { "@\($0)" } ?? url }

    /// Everything that says who the user is at the server.
    var account: [String?] { [token, tokenFile, tokenCommand, clientCertificate, clientKey] }

    /// Settings of the connections to the server's origin.
    var originSettings: OriginSettings {
        OriginSettings(
            caFile: caFile, proxy: proxy,
            clientCertificate: clientCertificate.map {
                ClientCertificate(certificateFile: $0, keyFile: clientKey)
            })
    }

    /// Returns the token, from wherever the settings say; nil for none.
    ///
    /// - Throws: ``CommandFailure`` if the file cannot be read, the command fails, or either has no
    ///   token.
    func credential() async throws -> String? {
        if let saved = try savedCredential() { return saved }
        guard let tokenCommand else { return nil }
        return try await TokenCommand(line: tokenCommand, server: place).output()
    }

    /// Returns the token of the settings or of the file; nil if a command has it, and for none.
    ///
    /// - Throws: ``CommandFailure`` if the file cannot be read or has no token.
    func savedCredential() throws -> String? {
        if let token { return token }
        guard let tokenFile else { return nil }
        guard let text = try? String(contentsOfFile: tokenFile, encoding: .utf8) else {
            throw Self.failure("the token file \(tokenFile) of \(place) cannot be read.")
        }
        let line = String(text.prefix { !$0.isNewline }).trimmingCharacters(in: .whitespaces)
        guard !line.isEmpty else {
            throw Self.failure(
                "the token file \(tokenFile) of \(place) has no token in its first line.")
        }
        return line
    }

    /// The token file, if others can read it.
    var publicTokenFile: String? {
        guard token == nil, let tokenFile else { return nil }
        var facts = stat()
        guard unsafe stat(tokenFile, &facts) == 0, facts.st_mode & 0o044 != 0 else { return nil }
        return tokenFile
    }

    private static func failure(_ message: String) -> CommandFailure {
        CommandFailure("kedge: \(message)", exitStatus: ExitStatus.usage)
    }
}

internal import Foundation
internal import KedgeClient
internal import KedgeModel

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
    /// - Throws: ``CommandFailure`` if the file cannot be read or the command fails.
    func credential() async throws -> String? {
        if let saved = try savedCredential() { return saved }
        guard let tokenCommand else { return nil }
        return try await TokenCommand(line: tokenCommand, server: url).output()
    }

    /// Returns the token of the settings or of the file; nil if a command has it, and for none.
    ///
    /// - Throws: ``CommandFailure`` if the file cannot be read.
    func savedCredential() throws -> String? {
        if let token { return token }
        guard let tokenFile else { return nil }
        guard let text = try? String(contentsOfFile: tokenFile, encoding: .utf8) else {
            throw CommandFailure(
                "kedge: the token file \(tokenFile) of \(url) cannot be read.",
                exitStatus: ExitStatus.usage)
        }
        return String(text.prefix { !$0.isNewline }).trimmingCharacters(in: .whitespaces)
    }
}

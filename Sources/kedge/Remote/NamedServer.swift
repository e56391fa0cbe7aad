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
    func credential() throws -> String? {
        if let token { return token }
        if let tokenFile {
            guard let text = try? String(contentsOfFile: tokenFile, encoding: .utf8) else {
                throw CommandFailure(
                    "kedge: the token file \(tokenFile) of \(url) cannot be read.",
                    exitStatus: ExitStatus.usage)
            }
            return Self.firstLine(text)
        }
        return try tokenCommand.map { try output(of: $0) }
    }

    private func output(of command: String) throws -> String {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", command]
        process.standardOutput = pipe
        // Standard input may be the data to upload.
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let bytes = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            throw CommandFailure(
                "kedge: the tokenCommand of \(url) failed: \(command)",
                exitStatus: ExitStatus.usage)
        }
        return Self.firstLine(String(decoding: bytes, as: UTF8.self))
    }

    private static func firstLine(_ text: String) -> String {
        String(text.prefix { !$0.isNewline }).trimmingCharacters(in: .whitespaces)
    }
}

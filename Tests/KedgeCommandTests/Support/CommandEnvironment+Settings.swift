import Foundation

extension CommandEnvironment {
    /// Directory of the user's settings.
    var settings: String { path(".config/kedge") }

    /// Writes a file of the user's settings.
    func write(
        _ text: String, toSettings name: String = "config.yaml", permissions: Int = 0o600
    ) throws {
        try FileManager.default.createDirectory(
            atPath: settings, withIntermediateDirectories: true)
        let path = "\(settings)/\(name)"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
    }

    /// Runs a line of a shell, in which `$K` is the command.
    func shell(
        _ line: String, environment: [String: String] = [:], within limit: Duration = .seconds(90)
    ) async throws -> Finished {
        let process = try start(
            program: "/bin/sh", ["-c", line],
            environment: environment.merging(["K": try Command.path()]) { $1 })
        return try await finish(process, within: limit)
    }
}

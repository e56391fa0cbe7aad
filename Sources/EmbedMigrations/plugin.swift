import Foundation
import PackagePlugin

/// Embeds the migrations of a target, or the contract of the service, into its binary as Swift
/// source, so that an installed program needs no extra files.
@main
struct EmbedMigrations: BuildToolPlugin {
    /// The folder below `migrations` of each target that uses the plugin.
    private static let folders = [
        "KedgeSQLite": "sqlite", "KedgePostgres": "postgres", "KedgeClient": "client",
    ]

    func createBuildCommands(
        context: PluginContext, target: any Target
    ) async throws -> [Command] {
        if target.name == "KedgeServer" { return [try contractCommand(context)] }
        guard let folder = Self.folders[target.name] else {
            Diagnostics.error("EmbedMigrations knows no migrations for target \(target.name)")
            return []
        }
        let source = context.package.directoryURL.appending(path: "migrations/\(folder)")
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedMigrations.swift")
        let files = try FileManager.default
            .contentsOfDirectory(at: source, includingPropertiesForKeys: nil)
            .sorted { $0.lastPathComponent < $1.lastPathComponent }
        return [
            .buildCommand(
                displayName: "Embedding migrations/\(folder)",
                executable: try context.tool(named: "migration-embedder").url,
                arguments: [source, output].map { $0.path(percentEncoded: false) },
                // The folder is an input, too: its modification time changes when a file is added
                // or removed.
                inputFiles: [source] + files,
                outputFiles: [output])
        ]
    }

    private func contractCommand(_ context: PluginContext) throws -> Command {
        let source = context.package.directoryURL.appending(path: "openapi/kedge.yaml")
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedContract.swift")
        return .buildCommand(
            displayName: "Embedding openapi/kedge.yaml",
            executable: try context.tool(named: "migration-embedder").url,
            arguments: ["--contract"] + [source, output].map { $0.path(percentEncoded: false) },
            inputFiles: [source], outputFiles: [output])
    }
}

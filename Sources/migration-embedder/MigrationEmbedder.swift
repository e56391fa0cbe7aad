internal import Glibc

/// Writes a Swift file that holds the text of every migration in a folder.
///
/// Usage: `migration-embedder FOLDER OUTPUT`. The folder holds `NNNN_name.sql` files and nothing
/// else, numbered from 0001 without gaps. No Foundation: the tool is built before everything else.
@main
struct MigrationEmbedder {
    static func main() {
        guard CommandLine.arguments.count == 3 else {
            stop("usage: migration-embedder FOLDER OUTPUT")
        }
        let folder = CommandLine.arguments[1]
        do throws(EmbeddingError) {
            let names = try MigrationName.ordered(try listNames(in: folder))
            let migrations = try names.map { name throws(EmbeddingError) in
                (name, try readText(at: folder + "/" + name.fileName))
            }
            try writeText(SwiftSource.text(of: migrations), to: CommandLine.arguments[2])
        } catch {
            stop("\(folder): \(error.message)")
        }
    }

    /// Ends the build with a message in the form that build systems show.
    private static func stop(_ message: String) -> Never {
        let line = Array("error: \(message)\n".utf8)
        write(STDERR_FILENO, line, line.count)
        exit(1)
    }
}

/// Why a folder cannot be embedded.
struct EmbeddingError: Error {
    let message: String
}

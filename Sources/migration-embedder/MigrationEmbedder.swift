internal import Glibc

/// Writes a Swift file with the text of every migration in a folder, or of the contract.
///
/// Usage: `migration-embedder FOLDER OUTPUT` or `migration-embedder --contract FILE OUTPUT`. The
/// folder contains only `NNNN_name.sql` files, numbered from 0001 without gaps. Uses no Foundation,
/// because the tool is built before everything else.
@main
struct MigrationEmbedder {
    static func main() {
        let arguments = CommandLine.arguments
        if arguments.count == 4, arguments[1] == "--contract" {
            do throws(EmbeddingError) {
                let text = try readText(at: arguments[2])
                return try writeText(SwiftSource.text(ofContract: text), to: arguments[3])
            } catch {
                stop(error.message)
            }
        }
        guard arguments.count == 3 else {
            stop("usage: migration-embedder FOLDER OUTPUT, or --contract FILE OUTPUT")
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

    /// Ends the build with an error message in the format that build systems recognize.
    private static func stop(_ message: String) -> Never {
        let line = Array("error: \(message)\n".utf8)
        write(STDERR_FILENO, line, line.count)
        exit(1)
    }
}

/// The reason that a folder cannot be embedded.
struct EmbeddingError: Error {
    let message: String
}

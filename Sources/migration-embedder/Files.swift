internal import Glibc

/// Returns the names in a folder, without hidden files, which belong to editors and systems.
func listNames(in folder: String) throws(EmbeddingError) -> [String] {
    guard let directory = opendir(folder) else { throw failure("open", folder) }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { raw in
            String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
        }
        if !name.hasPrefix(".") { names.append(name) }
    }
    return names
}

/// Returns the text of a file, which must be UTF-8.
func readText(at path: String) throws(EmbeddingError) -> String {
    guard let file = fopen(path, "r") else { throw failure("open", path) }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = fread(&block, 1, block.count, file)
        guard count > 0 else { break }
        bytes.append(contentsOf: block[..<count])
    }
    guard ferror(file) == 0 else { throw failure("read", path) }
    guard let text = String(validating: bytes, as: UTF8.self) else {
        throw EmbeddingError(message: "\(path) is not UTF-8 text")
    }
    return text
}

/// Writes a file that only the build reads.
func writeText(_ text: String, to path: String) throws(EmbeddingError) {
    guard let file = fopen(path, "w") else { throw failure("create", path) }
    let bytes = Array(text.utf8)
    let count = fwrite(bytes, 1, bytes.count, file)
    guard fclose(file) == 0, count == bytes.count else { throw failure("write", path) }
}

private func failure(_ operation: String, _ path: String) -> EmbeddingError {
    EmbeddingError(message: "cannot \(operation) \(path): \(String(cString: strerror(errno)))")
}

internal import Foundation
internal import KedgeModel

/// Paths from user input, made independent of the process.
package enum LocalPath {
    /// Returns the absolute path. A `..` stays, because after a symbolic link only the system can
    /// resolve it (path_resolution(7)).
    package static func absolute(_ path: String) -> String {
        let full =
            path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
        return "/"
            + FilePath.components(of: full).filter { !$0.isEmpty && $0 != "." }
            .joined(separator: "/")
    }

    /// Returns the last component.
    static func name(of path: String) -> String {
        FilePath.components(of: path).last { !$0.isEmpty } ?? ""
    }
}

/// MIME types of common file name extensions.
enum MIMEType {
    private static let types: [String: String] = [
        "avif": "image/avif", "bin": "application/octet-stream", "bmp": "image/bmp",
        "bz2": "application/x-bzip2", "css": "text/css", "csv": "text/csv",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "epub": "application/epub+zip", "flac": "audio/flac", "gif": "image/gif",
        "gz": "application/gzip", "heic": "image/heic", "html": "text/html",
        "iso": "application/x-iso9660-image", "jpeg": "image/jpeg", "jpg": "image/jpeg",
        "js": "text/javascript", "json": "application/json", "m4a": "audio/mp4",
        "md": "text/markdown", "mkv": "video/x-matroska", "mov": "video/quicktime",
        "mp3": "audio/mpeg", "mp4": "video/mp4", "ogg": "audio/ogg", "pdf": "application/pdf",
        "png": "image/png", "svg": "image/svg+xml", "tar": "application/x-tar",
        "tif": "image/tiff", "tiff": "image/tiff", "txt": "text/plain", "wav": "audio/wav",
        "webm": "video/webm", "webp": "image/webp",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xml": "application/xml", "zip": "application/zip", "zst": "application/zstd",
    ]

    /// Returns the type for a file name; nil for an unknown extension.
    static func guess(fileName: String) -> String? {
        guard let dot = fileName.lastIndex(of: ".") else { return nil }
        return types[fileName[fileName.index(after: dot)...].lowercased()]
    }
}

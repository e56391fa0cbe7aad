/// The body of a request.
enum HTTPBody {
    case none
    case text(String)
    /// A part of a file, sent by the kernel from the page cache: the client's own work stays small.
    case file(Descriptor, offset: Int, byteCount: Int)

    var byteCount: Int {
        switch self {
        case .none: 0
        case .text(let text): text.utf8.count
        case .file(_, _, let byteCount): byteCount
        }
    }
}

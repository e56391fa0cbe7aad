internal import Glibc

/// A failure that makes numbers worthless: a wrong answer, or a machine that cannot run the
/// program.
struct BenchFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// A failure with the system's last error. Call it before anything else that may set `errno`.
    static func system(_ operation: String) -> BenchFailure {
        BenchFailure("\(operation): \(String(cString: strerror(errno)))")
    }
}

internal import Foundation

/// The locale C.UTF-8, in which calls of the C library take characters instead of bytes, whatever
/// the user's locale.
enum UnicodeLocale {
    /// Runs a call in the locale, which is set for the thread and only meanwhile.
    static func run<Result>(_ body: () -> Result) -> Result {
        let before = locale.map { uselocale($0) }
        defer { if let before { uselocale(before) } }
        return body()
    }

    /// Safe to share: made once, never changed, and used as long as the process lives.
    private nonisolated(unsafe) static let locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil)
}

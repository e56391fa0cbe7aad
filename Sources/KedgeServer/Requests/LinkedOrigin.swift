internal import KedgeLocks

/// The origin of the page that the link of a request permits. It gets the response, also an error.
final class LinkedOrigin: Sendable {
    private let origin = Mutex<String?>(nil)

    /// The value of `Origin`; nil for no page.
    var value: String? { origin.withLock { $0 } }

    func set(_ value: String) { origin.withLock { $0 = value } }
}

/// Limit of the silence of a server that has not answered yet.
enum AnswerTimeout {
    /// Time without a byte after which the requests of this task fail; nil for the transport's own.
    @TaskLocal static var current: Duration?

    /// A request gets at least this long, also at the end of the wait.
    private static let least = Duration.seconds(1)
    /// Limit for the only request of a command that does not wait.
    private static let only = Duration.seconds(10)
    /// The usual limit of a transport.
    private static let usual = Duration.seconds(30)

    /// Returns the limit for the next request.
    ///
    /// - Parameters:
    ///   - timeout: Timeout of the wait for the server; zero for one request without a wait.
    ///   - waited: Time that has passed of it.
    static func duration(timeout: Duration, waited: Duration) -> Duration {
        timeout > .zero ? max(timeout - waited, least) : only
    }

    /// Returns the limit for one call: the usual one, or less while the server has not answered.
    ///
    /// - Parameter usual: The call's own limit; nil for the transport's.
    static func stallTimeout(usual: Duration?) -> Duration? {
        guard let current else { return usual }
        return min(current, usual ?? Self.usual)
    }
}

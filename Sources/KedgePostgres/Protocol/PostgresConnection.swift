import CPostgres
internal import Glibc

/// One connection. It belongs to the thread that made it. Its calls block that thread, each for a
/// bounded time.
///
/// Statements are unnamed and sent with their parameters, so a pooler may run each transaction on
/// another server connection. A statement is cancelled by closing the socket: `PQcancel` would
/// connect again, without TLS and without a timeout.
@safe package final class PostgresConnection {
    private let pointer: OpaquePointer
    /// Longest wait for the end of a statement.
    private let answerTimeout: Duration
    /// Set after a timeout: a late answer might be taken for that of the next statement.
    private var isAbandoned = false

    /// Connects. Blocks for at most `connect_timeout` for each host and address.
    init(
        _ parameters: [(keyword: String, value: String)], answerTimeout: Duration
    ) throws(PostgresFailure) {
        guard let pointer = unsafe Self.connect(parameters) else {
            throw PostgresFailure(kind: .lost, text: "libpq has no memory for a connection")
        }
        unsafe self.pointer = pointer
        self.answerTimeout = answerTimeout
        guard unsafe PQstatus(pointer) == CONNECTION_OK, unsafe PQsetnonblocking(pointer, 1) == 0
        else { throw PostgresFailure(kind: .lost, text: lastMessage) }
        // Otherwise libpq writes notices to the standard error.
        unsafe PQsetNoticeProcessor(pointer, { _, _ in }, nil)
    }

    deinit { unsafe PQfinish(pointer) }

    /// Runs one statement with parameters.
    ///
    /// - Parameter timeout: Longest wait for its end; nil for the default.
    package func query(
        _ sql: String, _ values: [PostgresValue] = [], timeout: Duration? = nil
    ) throws(PostgresFailure) -> PostgresResult {
        guard send(sql, values) == 1 else { throw lost() }
        let results = try results(until: .after(timeout ?? answerTimeout))
        guard let result = results.last else {
            throw PostgresFailure(kind: .nonsense, text: "a statement has no result")
        }
        return result
    }

    /// Runs statements without parameters in one round trip. Values in results are text.
    @discardableResult
    package func script(_ sql: String, timeout: Duration? = nil) throws(PostgresFailure)
        -> [PostgresResult]
    {
        guard unsafe PQsendQuery(pointer, sql) == 1 else { throw lost() }
        return try results(until: .after(timeout ?? answerTimeout))
    }

    /// Whether the connection works; detects a connection that broke while it was idle.
    var isUsable: Bool {
        guard !isAbandoned, unsafe PQstatus(pointer) == CONNECTION_OK else { return false }
        // An idle server only sends its farewell; consuming notices the end of the stream.
        guard wait(for: POLLIN, until: .after(.zero)) else { return true }
        return unsafe PQconsumeInput(pointer) == 1 && PQstatus(pointer) == CONNECTION_OK
    }

    /// A notification of another connection (`NOTIFY`).
    struct Notification {
        let channel: String
        let payload: String
    }

    /// Waits until the server sends something unprompted. Returns the notifications.
    func notifications(until deadline: Deadline) throws(PostgresFailure) -> [Notification] {
        _ = wait(for: POLLIN, until: deadline)
        guard unsafe PQconsumeInput(pointer) == 1 else { throw lost() }
        var notifications: [Notification] = []
        while let notification = unsafe PQnotifies(pointer) {
            notifications.append(
                Notification(
                    channel: unsafe String(cString: notification.pointee.relname),
                    payload: unsafe String(cString: notification.pointee.extra)))
            unsafe PQfreemem(notification)
        }
        return notifications
    }

    private static func connect(_ parameters: [(keyword: String, value: String)]) -> OpaquePointer?
    {
        // Copies that stay valid during the call.
        let keywords = unsafe parameters.map { unsafe strdup($0.keyword) }
        let values = unsafe parameters.map { unsafe strdup($0.value) }
        defer {
            unsafe release(keywords)
            unsafe release(values)
        }
        let keywordList = unsafe keywords.map { unsafe UnsafePointer($0) } + [nil]
        let valueList = unsafe values.map { unsafe UnsafePointer($0) } + [nil]
        return unsafe PQconnectdbParams(keywordList, valueList, 0)
    }

    private static func release(_ texts: [UnsafeMutablePointer<CChar>?]) {
        for index in unsafe texts.indices { unsafe free(texts[index]) }
    }

    private func send(_ sql: String, _ values: [PostgresValue]) -> Int32 {
        // One block for all values; a pointer into it must not be nil for an empty value.
        let block = values.reduce(into: [UInt8]()) { $0 += $1.bytes ?? [] } + [0]
        return unsafe block.withUnsafeBytes { memory in
            var pointers = unsafe [UnsafePointer<CChar>?]()
            var offset = 0
            for value in values {
                let start = unsafe memory.baseAddress.map { unsafe $0 + offset }
                unsafe pointers.append(
                    value.bytes == nil ? nil : start?.assumingMemoryBound(to: CChar.self))
                offset += value.bytes?.count ?? 0
            }
            return unsafe PQsendQueryParams(
                pointer, sql, Int32(values.count), values.map(\.type), pointers,
                values.map { Int32($0.bytes?.count ?? 0) },
                [Int32](repeating: 1, count: values.count), 1)
        }
    }

    /// Reads all results of the server, to the end.
    private func results(until deadline: Deadline) throws(PostgresFailure) -> [PostgresResult] {
        try flush(until: deadline)
        var results: [PostgresResult] = []
        while let result = try next(until: deadline) { results.append(result) }
        if let failure = results.lazy.compactMap(\.failure).first {
            // A terminating server sends its reason and closes; libpq reports the close in its own
            // words.
            throw unsafe PQstatus(pointer) == CONNECTION_OK || failure.endsConnection
                ? failure : lost()
        }
        return results
    }

    private func next(until deadline: Deadline) throws(PostgresFailure) -> PostgresResult? {
        while unsafe PQisBusy(pointer) == 1 {
            // Short waits: over TLS, bytes may wait inside OpenSSL, where poll(2) does not see
            // them.
            if !wait(for: POLLIN, until: .after(min(deadline.remaining, .milliseconds(250)))) {
                guard !deadline.isOver else { throw late() }
            }
            guard unsafe PQconsumeInput(pointer) == 1 else { throw lost() }
        }
        return unsafe PQgetResult(pointer).map { unsafe PostgresResult($0) }
    }

    /// Sends the buffered bytes. Reads meanwhile, since otherwise both sides might wait for each
    /// other.
    private func flush(until deadline: Deadline) throws(PostgresFailure) {
        while true {
            let rest = unsafe PQflush(pointer)
            guard rest != 0 else { return }
            guard rest > 0 else { throw lost() }
            guard wait(for: POLLIN | POLLOUT, until: deadline) else { throw late() }
            guard unsafe PQconsumeInput(pointer) == 1 else { throw lost() }
        }
    }

    /// Waits until the socket is ready; false on a timeout.
    private func wait(for events: Int32, until deadline: Deadline) -> Bool {
        var entry = pollfd(fd: unsafe PQsocket(pointer), events: Int16(events), revents: 0)
        while true {
            let count = unsafe poll(&entry, 1, deadline.remainingMilliseconds)
            if count > 0 { return true }
            // After an interruption the wait continues. Any other error shows when reading.
            if count == 0 || errno != EINTR { return count != 0 }
        }
    }

    private func lost() -> PostgresFailure {
        isAbandoned = true
        return PostgresFailure(kind: .lost, text: lastMessage)
    }

    private func late() -> PostgresFailure {
        isAbandoned = true
        return PostgresFailure(kind: .late, text: "PostgreSQL did not answer in time")
    }

    /// libpq's message about the connection: hosts and reasons, never the password.
    private var lastMessage: String {
        let text = unsafe String(cString: PQerrorMessage(pointer))
        return String(text.split(whereSeparator: \.isNewline).joined(separator: "; "))
    }
}

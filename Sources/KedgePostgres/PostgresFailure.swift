internal import KedgeEngine

/// Something that went wrong between us and the server. The text is for logs: it may name hosts and
/// tables, but holds no password and no values.
struct PostgresFailure: Error {
    enum Kind: Equatable {
        /// The server refused a statement; SQLSTATE, and the constraint when one was violated.
        case refused(state: String, constraint: String?)
        /// The connection could not be made, or broke.
        case lost
        /// The server did not answer in time. The connection is unusable, for the answer may still
        /// come.
        case late
        /// An answer that makes no sense: a mistake of ours.
        case nonsense
    }

    let kind: Kind
    let text: String

    /// True when the connection is of no use any more.
    ///
    /// PostgreSQL says so with class 08, and 57P01 to 57P03 when it goes or is not there yet; with
    /// 25006 it is a standby now, so that the primary must be looked for. A standby refuses what only a primary
    /// has, unlogged tables and transactions that write, with 0A000; we ask for nothing else that it could mean.
    var endsConnection: Bool {
        switch kind {
        case .lost, .late: true
        case .nonsense: false
        case .refused(let state, _):
            state.hasPrefix("08") || state.hasPrefix("57P")
                || ["25006", "0A000"].contains(state)
        }
    }

    /// True when the transaction lost against another one and can win the next time: serialization
    /// failure and deadlock.
    var isConflict: Bool {
        if case .refused(let state, _) = kind { ["40001", "40P01"].contains(state) } else { false }
    }

    /// True when a row with the same key was there.
    func violatesUnique(_ constraint: String) -> Bool {
        kind == .refused(state: "23505", constraint: constraint)
    }

    /// True when the server says that what it stored is damaged.
    var isDamage: Bool {
        if case .refused(let state, _) = kind { state.hasPrefix("XX00") } else { false }
    }
}

extension MetadataError {
    /// Translates whatever an operation threw.
    init(_ error: any Error) {
        switch error {
        case let error as MetadataError: self = error
        case let error as PostgresFailure: self.init(error)
        default: self = .failed("\(error)")
        }
    }

    private init(_ failure: PostgresFailure) {
        guard case .refused(let state, _) = failure.kind else {
            self = failure.kind == .nonsense ? .failed(failure.text) : .unavailable(failure.text)
            return
        }
        switch state {
        case "53100": self = .full(failure.text)
        // A lock or a statement took too long; transactions kept losing against others.
        case "55P03", "57014", "40001", "40P01": self = .unavailable(failure.text)
        // Class 53: out of memory, of connections and the like.
        case _ where state.hasPrefix("53") || failure.endsConnection:
            self = .unavailable(failure.text)
        default: self = .failed(failure.text)
        }
    }
}

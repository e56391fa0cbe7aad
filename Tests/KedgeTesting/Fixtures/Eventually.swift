/// An error that ends a test; the text is the reason.
package struct TestFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// Polls until there is a result, because the state of another process is visible only from
/// outside.
///
/// - Throws: ``TestFailure`` at the limit; `CancellationError` at the test's own limit.
package func eventually<Result>(
    _ what: String, within limit: Duration = .seconds(60), _ look: () throws -> Result?
) async throws -> Result {
    let start = ContinuousClock.now
    while true {
        if let result = try look() { return result }
        guard start.duration(to: .now) < limit else {
            throw TestFailure("not within \(limit): \(what)")
        }
        try await Task.sleep(for: .milliseconds(5))
    }
}

/// Polls until a condition holds.
package func eventually(
    _ what: String, within limit: Duration = .seconds(60), is condition: () throws -> Bool
) async throws {
    let _: Bool = try await eventually(what, within: limit) { try condition() ? true : nil }
}

/// Polls until a condition holds, or a time has passed. Returns whether it holds.
package func eventually(
    within limit: Duration = .seconds(10), _ condition: () async throws -> Bool
) async throws -> Bool {
    let deadline = ContinuousClock.now + limit
    while ContinuousClock.now < deadline {
        if try await condition() { return true }
        try await Task.sleep(for: .milliseconds(10))
    }
    return false
}

internal import Foundation
internal import KedgeLocks

/// A program such as curl or openssl that runs to its end.
package struct Tool: Sendable {
    /// Exit status; 128 and more for a signal.
    package let status: Int32
    /// Standard output and standard error, in the order of their writing.
    package let output: String

    /// Runs a program without input and waits for its end, on a thread of its own.
    ///
    /// - Parameter name: A name to look up in `PATH`.
    package static func run(_ name: String, _ arguments: [String]) async throws -> Tool {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try runNow(name, arguments) })
            }
        }
    }

    /// Runs a program that must succeed, and returns its output.
    ///
    /// - Throws: ``TestFailure`` with the output of a failure.
    @discardableResult
    package static func require(_ name: String, _ arguments: [String]) async throws -> String {
        let finished = try await run(name, arguments)
        guard finished.status == 0 else {
            throw TestFailure("\(name) ended with \(finished.status): \(finished.output)")
        }
        return finished.output
    }

    private static func runNow(_ name: String, _ arguments: [String]) throws -> Tool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [name] + arguments
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        // A process that starts holds the sockets of its parent for a moment.
        try LoopbackSocket.spawning.withLock { _ in try process.run() }
        let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        let isSignal = process.terminationReason == .uncaughtSignal
        return Tool(
            status: process.terminationStatus + (isSignal ? 128 : 0),
            output: String(decoding: bytes, as: UTF8.self))
    }
}

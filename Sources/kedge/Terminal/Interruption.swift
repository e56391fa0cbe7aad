internal import Dispatch
internal import Foundation
internal import KedgeLocks
internal import KedgeModel

/// Handles SIGINT, SIGTERM and, unless it has another meaning, SIGHUP: the first signal saves and
/// ends, the second ends at once.
///
/// Invariant behind the unchecked conformance: `init` creates the sources, which are only kept
/// alive afterwards; the lock protects everything else.
final class Interruption: @unchecked Sendable {
    private let signal = Mutex<Int32?>(nil)
    private var sources: [any DispatchSourceSignal] = []

    /// Exit status for the first signal; nil without one.
    var exitStatus: Int32? { signal.withLock { $0.map { 128 + $0 } } }

    /// - Parameters:
    ///   - numbers: The signals that end the process.
    ///   - onFirst: Called once with the number of the signal, on a dispatch queue.
    init(
        _ numbers: [Int32] = [SIGINT, SIGTERM, SIGHUP],
        onFirst: @escaping @Sendable (Int32) -> Void
    ) {
        for number in numbers {
            // nohup(1) lets a command outlive its terminal.
            var before = sigaction()
            unsafe sigaction(number, nil, &before)
            if number == SIGHUP,
                unsafe before.__sigaction_handler.sa_handler
                    .map({ unsafeBitCast($0, to: Int.self) })
                    == unsafeBitCast(SIG_IGN, to: Int.self)
            {
                continue
            }
            Foundation.signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { [weak self] in self?.receive(number, onFirst) }
            source.resume()
            sources.append(source)
        }
    }

    private func receive(_ number: Int32, _ onFirst: @Sendable (Int32) -> Void) {
        let isFirst = signal.withLock { signal in
            defer { signal = signal ?? number }
            return signal == nil
        }
        // A closing terminal may send SIGHUP twice.
        guard isFirst || number != SIGHUP else { return }
        guard isFirst else { endProcess(128 + number) }
        onFirst(number)
    }
}

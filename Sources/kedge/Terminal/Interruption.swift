internal import Dispatch
internal import Foundation
internal import KedgeLocks
internal import KedgeModel

/// Ctrl-C and SIGTERM: the first one saves and ends, the second one ends at once.
///
/// Invariant behind the unchecked conformance: the sources are made in `init` and only kept alive
/// afterwards; everything else is behind the lock.
final class Interruption: @unchecked Sendable {
    private let signal = Mutex<Int32?>(nil)
    private var sources: [any DispatchSourceSignal] = []

    /// Exit status of the signal that came; nil when none did.
    var exitStatus: Int32? { signal.withLock { $0.map { 128 + $0 } } }

    /// - Parameter onFirst: Called once, from a queue of its own.
    init(onFirst: @escaping @Sendable () -> Void) {
        for number in [SIGINT, SIGTERM] {
            Foundation.signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { [weak self] in self?.receive(number, onFirst) }
            source.resume()
            sources.append(source)
        }
    }

    private func receive(_ number: Int32, _ onFirst: @Sendable () -> Void) {
        let isFirst = signal.withLock { signal in
            defer { signal = signal ?? number }
            return signal == nil
        }
        guard isFirst else { endProcess(128 + number) }
        onFirst()
    }
}

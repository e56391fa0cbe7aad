internal import Foundation
internal import KedgeClient
internal import KedgeModel
internal import Synchronization

/// Shows how transfers go: bars on a terminal, a line now and then elsewhere, nothing when quiet.
///
/// What is shown is what the other side confirmed, so it never goes back.
final class ProgressDisplay: Sendable {
    enum Mode: Sendable {
        case bars
        case lines
        case json
        case silent
    }

    private struct State {
        var order: [TransferID] = []
        var snapshots: [TransferID: TransferSnapshot] = [:]
        var shownLineCount = 0
        var lastLine: [TransferID: ContinuousClock.Instant] = [:]
    }
    private let mode: Mode
    private let state = Mutex(State())

    init(isJSON: Bool, isQuiet: Bool) {
        mode = isJSON ? .json : isQuiet ? .silent : StandardError.isTerminal ? .bars : .lines
    }

    /// Takes a transfer's newest state and shows it when it is time to.
    func show(_ snapshot: TransferSnapshot) {
        state.withLock { state in
            if state.snapshots[snapshot.id] == nil { state.order.append(snapshot.id) }
            state.snapshots[snapshot.id] = snapshot
            switch mode {
            case .silent: break
            case .bars: redraw(&state)
            case .lines: line(snapshot, &state, interval: .seconds(10))
            case .json: line(snapshot, &state, interval: .seconds(1))
            }
        }
    }

    /// Says something to the person without tearing the bars; errors also when quiet.
    func say(_ text: String, isError: Bool = false) {
        guard mode != .silent || isError else { return }
        state.withLock { state in
            if mode == .bars { StandardError.write(Self.clear(state.shownLineCount)) }
            state.shownLineCount = 0
            StandardError.write(text + "\n")
            if mode == .bars { redraw(&state) }
        }
    }

    private func redraw(_ state: inout State) {
        let lines = state.order.compactMap { state.snapshots[$0].map(Self.bar) }
        StandardError.write(
            Self.clear(state.shownLineCount) + lines.map { $0 + "\n" }.joined())
        state.shownLineCount = lines.count
    }

    private func line(_ snapshot: TransferSnapshot, _ state: inout State, interval: Duration) {
        let now = ContinuousClock.now
        if !snapshot.state.isFinal, let last = state.lastLine[snapshot.id],
            last.duration(to: now) < interval
        {
            return
        }
        state.lastLine[snapshot.id] = now
        if mode == .json {
            // The result has its own object, written by the command at the end.
            guard !snapshot.state.isFinal else { return }
            StandardOutput.write(JSONLine.text(.progress, snapshot))
        } else {
            StandardError.write(Self.summary(snapshot) + "\n")
        }
    }

    private static func clear(_ lineCount: Int) -> String {
        lineCount > 0 ? "\u{1B}[\(lineCount)A\u{1B}[J" : ""
    }

    private static func summary(_ snapshot: TransferSnapshot) -> String {
        "\(printable(snapshot.name))  \(percent(snapshot))  \(facts(snapshot))"
    }

    private static func bar(_ snapshot: TransferSnapshot) -> String {
        let width = StandardError.columnCount
        let name = fitted(printable(snapshot.name), to: max(12, width / 4))
        let tail = facts(snapshot)
        let room = max(0, width - name.count - tail.count - 12)
        let filled = Int(Double(room) * fraction(snapshot))
        let bar =
            String(repeating: "=", count: filled) + String(repeating: " ", count: room - filled)
        return String("\(name) \(percent(snapshot)) [\(bar)] \(tail)".prefix(width - 1))
    }

    private static func facts(_ snapshot: TransferSnapshot) -> String {
        switch snapshot.state {
        case .uploading, .downloading:
            let total = snapshot.totalBytes.map { "/" + ByteText.size($0) } ?? ""
            let rate = snapshot.bytesPerSecond.map { "  " + ByteText.rate($0) } ?? ""
            let rest = snapshot.timeRemaining.map { "  ETA " + ByteText.time($0) } ?? ""
            return ByteText.size(snapshot.bytesTransferred) + total + rate + rest
        case .completed:
            return "\(ByteText.size(snapshot.totalBytes ?? snapshot.bytesTransferred))  done"
        case .queued, .paused, .failed, .canceled:
            return snapshot.message
        }
    }

    private static func fraction(_ snapshot: TransferSnapshot) -> Double {
        if snapshot.state == .completed { return 1 }
        guard let total = snapshot.totalBytes, total > 0 else { return 0 }
        return min(1, Double(snapshot.bytesTransferred) / Double(total))
    }

    private static func percent(_ snapshot: TransferSnapshot) -> String {
        String(format: "%3d%%", Int(fraction(snapshot) * 100))
    }

    private static func fitted(_ text: String, to width: Int) -> String {
        text.count <= width
            ? text.padding(toLength: width, withPad: " ", startingAt: 0)
            : String(text.prefix(width - 1)) + "…"
    }

    /// A name from the disk may hold anything; a terminal obeys control characters.
    private static func printable(_ name: String) -> String { FileName.sanitized(name) }
}

internal import Foundation
internal import KedgeClient
internal import KedgeLocks
internal import KedgeModel

/// Shows how transfers go: bars on a terminal, a line now and then elsewhere, nothing when quiet.
///
/// What is shown is what the other side confirmed, so it never goes back. Results go through it, too:
/// bars that are redrawn must not erase what was written between them.
final class ProgressDisplay: Sendable {
    enum Mode: Sendable {
        case bars
        case lines
        case json
        case silent
    }

    /// Between two looks at the transfers.
    private static let interval = Duration.milliseconds(200)

    private struct State {
        /// Unfinished transfers of this command, in order.
        var order: [TransferID] = []
        var snapshots: [TransferID: TransferSnapshot] = [:]
        var shownLineCount = 0
        var lastLine: [TransferID: ShownLine] = [:]
    }

    private struct ShownLine {
        let time: ContinuousClock.Instant
        let snapshot: TransferSnapshot

        /// True when there is something to tell apart from bytes that moved on (R104).
        func isOutdated(by newer: TransferSnapshot) -> Bool {
            snapshot.state != newer.state || snapshot.errorCode != newer.errorCode
                || snapshot.message != newer.message
        }
    }

    private let mode: Mode
    private let state = Mutex(State())

    /// - Parameter isLogging: Log lines and bars would tear each other.
    init(isJSON: Bool, isQuiet: Bool, isLogging: Bool) {
        mode =
            isJSON
            ? .json : isQuiet ? .silent : StandardError.isTerminal && !isLogging ? .bars : .lines
    }

    /// A transfer to show from now on.
    func add(_ snapshot: TransferSnapshot) {
        guard mode != .silent else { return }
        state.withLock { state in
            if !state.order.contains(snapshot.id) { state.order.append(snapshot.id) }
        }
        update(snapshot)
    }

    /// Shows all transfers that were added until the task is canceled.
    func watch(_ client: TransferClient) async {
        guard mode != .silent else { return }
        while !Task.isCancelled {
            for id in state.withLock({ $0.order }) where !Task.isCancelled {
                // A record that cannot be read is told by the run of the transfer.
                guard let snapshot = try? await client.transfer(id) else { continue }
                update(snapshot)
            }
            if mode == .bars { state.withLock { redraw(&$0) } }
            // Canceled while waiting: the loop ends.
            try? await Task.sleep(for: Self.interval)
        }
    }

    private func update(_ snapshot: TransferSnapshot) {
        state.withLock { state in
            // It may have finished since it was looked at.
            guard let place = state.order.firstIndex(of: snapshot.id) else { return }
            if let newer = snapshot.replacedBy { state.order[place] = newer }
            state.snapshots[snapshot.id] = snapshot
            if mode != .bars, !snapshot.state.isFinal || snapshot.replacedBy != nil {
                line(snapshot, &state)
            }
        }
    }

    /// A transfer that this command is done with: its last state, then what is to be told about it.
    func finish(_ snapshot: TransferSnapshot, output: String?, complaint: String?) {
        state.withLock { state in
            state.order.removeAll { $0 == snapshot.id || $0 == snapshot.replaces }
            state.snapshots[snapshot.id] = nil
            clearBars(&state)
            switch mode {
            // A complaint says the same in full.
            case .bars where complaint == nil: StandardError.write(Self.bar(snapshot) + "\n")
            case .lines where complaint == nil:
                StandardError.write(Self.summary(snapshot) + "\n")
            default: break
            }
            tell(output: output, complaint: complaint, &state)
        }
    }

    /// Writes data to standard output, and to the person what went wrong, also when quiet.
    func tell(output: String?, complaint: String?) {
        state.withLock { state in
            clearBars(&state)
            tell(output: output, complaint: complaint, &state)
        }
    }

    /// Says something to the person without tearing the bars.
    func say(_ text: String) {
        guard mode != .silent else { return }
        tell(output: nil, complaint: text)
    }

    /// Tells what a person should know about a file, also when quiet.
    func warn(_ name: String, _ message: String) {
        let line = mode == .json ? JSONLine.encode(WarningLine(name: name, message: message)) : nil
        tell(output: line, complaint: "kedge: \(printable(name)): \(message)")
    }

    private func tell(output: String?, complaint: String?, _ state: inout State) {
        if let output { StandardOutput.offer(output) }
        if let complaint { StandardError.write(complaint + "\n") }
        if mode == .bars { redraw(&state) }
    }

    private func clearBars(_ state: inout State) {
        if state.shownLineCount > 0 { StandardError.write(Self.clear(state.shownLineCount)) }
        state.shownLineCount = 0
    }

    /// Bars of the unfinished transfers, those that move first, as many as the terminal has room for.
    private func redraw(_ state: inout State) {
        let known = state.order.compactMap { state.snapshots[$0] }.filter { !$0.state.isFinal }
        let moving = known.filter { $0.state == .uploading || $0.state == .downloading }
        let others = known.filter { $0.state != .uploading && $0.state != .downloading }
        let lines = (moving + others).prefix(max(1, StandardError.rowCount - 2)).map(Self.bar)
        guard !lines.isEmpty || state.shownLineCount > 0 else { return }
        StandardError.write(
            Self.clear(state.shownLineCount) + lines.map { $0 + "\n" }.joined())
        state.shownLineCount = lines.count
    }

    private func line(_ snapshot: TransferSnapshot, _ state: inout State) {
        let now = ContinuousClock.now
        let interval: Duration = mode == .json ? .seconds(1) : .seconds(10)
        if let last = state.lastLine[snapshot.id], !last.isOutdated(by: snapshot),
            snapshot == last.snapshot || last.time.duration(to: now) < interval
        {
            return
        }
        state.lastLine[snapshot.id] = ShownLine(time: now, snapshot: snapshot)
        if mode == .json {
            StandardOutput.offer(JSONLine.text(.progress, snapshot))
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
            // It tries again, and what it waits for matters more than the rate (R104).
            if snapshot.errorCode != nil { return printable(snapshot.message) }
            let total = snapshot.totalBytes.map { "/" + ByteText.size($0) } ?? ""
            let rate = snapshot.bytesPerSecond.map { "  " + ByteText.rate($0) } ?? ""
            let rest = snapshot.timeRemaining.map { "  ETA " + ByteText.time($0) } ?? ""
            return ByteText.size(snapshot.bytesTransferred) + total + rate + rest
        case .completed:
            let size = ByteText.size(snapshot.totalBytes ?? snapshot.bytesTransferred)
            return "\(size)  \(snapshot.verification == .unverified ? "done, unverified" : "done")"
        case .queued, .paused, .failed, .canceled:
            return printable(snapshot.message)
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
}

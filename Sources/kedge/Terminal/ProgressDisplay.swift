internal import Foundation
internal import KedgeClient
internal import KedgeLocks
internal import KedgeModel

/// Shows the progress of transfers: bars on a terminal, occasional lines elsewhere, nothing when
/// quiet.
///
/// Shows only confirmed bytes. Writes results, too, because redrawn bars must not erase text
/// written between them.
final class ProgressDisplay: Sendable {
    enum Mode: Sendable {
        case bars
        case lines
        case json
        case silent
    }

    /// Interval of polling the transfers.
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

        /// Whether more than the number of bytes has changed.
        func isOutdated(by newer: TransferSnapshot) -> Bool {
            snapshot.state != newer.state || snapshot.errorCode != newer.errorCode
                || snapshot.message != newer.message
        }
    }

    private let mode: Mode
    private let state = Mutex(State())

    /// - Parameter isLogging: Disables bars, which log lines would break.
    init(isJSON: Bool, isQuiet: Bool, isLogging: Bool) {
        mode =
            isJSON
            ? .json : isQuiet ? .silent : StandardError.isTerminal && !isLogging ? .bars : .lines
    }

    /// Adds a transfer to the display.
    func add(_ snapshot: TransferSnapshot) {
        guard mode != .silent else { return }
        state.withLock { state in
            if !state.order.contains(snapshot.id) { state.order.append(snapshot.id) }
        }
        update(snapshot)
    }

    /// Shows the added transfers until the task is canceled.
    func watch(_ client: TransferClient) async {
        guard mode != .silent else { return }
        while !Task.isCancelled {
            for id in state.withLock({ $0.order }) where !Task.isCancelled {
                // The transfer's own run reports a record that cannot be read.
                guard let snapshot = try? await client.transfer(id) else { continue }
                update(snapshot)
            }
            if mode == .bars { state.withLock { redraw(&$0) } }
            // Throws when canceled during the wait; the loop then ends.
            try? await Task.sleep(for: Self.interval)
        }
    }

    private func update(_ snapshot: TransferSnapshot) {
        state.withLock { state in
            // The transfer may have finished since its snapshot was taken.
            guard let place = state.order.firstIndex(of: snapshot.id) else { return }
            if let newer = snapshot.replacedBy { state.order[place] = newer }
            state.snapshots[snapshot.id] = snapshot
            if mode != .bars, !snapshot.state.isFinal || snapshot.replacedBy != nil {
                line(snapshot, &state)
            }
        }
    }

    /// Shows the last state of a finished transfer, then its output and complaint.
    func finish(_ snapshot: TransferSnapshot, output: String?, complaint: String?) {
        state.withLock { state in
            state.order.removeAll { $0 == snapshot.id || $0 == snapshot.replaces }
            state.snapshots[snapshot.id] = nil
            clearBars(&state)
            switch mode {
            // A complaint contains the same in full.
            case .bars where complaint == nil: StandardError.write(Self.bar(snapshot) + "\n")
            case .lines where complaint == nil:
                StandardError.write(Self.summary(snapshot) + "\n")
            default: break
            }
            show(output: output, complaint: complaint, &state)
        }
    }

    /// Writes data to standard output and a complaint to standard error, even when quiet.
    func show(output: String?, complaint: String?) {
        state.withLock { state in
            clearBars(&state)
            show(output: output, complaint: complaint, &state)
        }
    }

    /// Writes a message to standard error without breaking the bars; nothing when quiet.
    func say(_ text: String) {
        guard mode != .silent else { return }
        show(output: nil, complaint: text)
    }

    /// Warns about a file, even when quiet.
    func warn(_ name: String, _ message: String) {
        let line = mode == .json ? JSONLine.encode(WarningLine(name: name, message: message)) : nil
        show(output: line, complaint: "kedge: \(printable(name)): \(message)")
    }

    private func show(output: String?, complaint: String?, _ state: inout State) {
        if let output { StandardOutput.offer(output) }
        if let complaint { StandardError.write(complaint + "\n") }
        if mode == .bars { redraw(&state) }
    }

    private func clearBars(_ state: inout State) {
        if state.shownLineCount > 0 { StandardError.write(Self.clear(state.shownLineCount)) }
        state.shownLineCount = 0
    }

    /// Redraws the bars of unfinished transfers: moving ones first, as many as fit on the terminal.
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
            // During a retry, its reason matters more than the rate.
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

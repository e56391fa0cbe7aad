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
    /// Number of polled transfers that have not begun. They begin in order, and each poll reads the
    /// records.
    private static let maxPolledIdleCount = 64

    fileprivate struct State {
        /// Unfinished transfers of this command, in order.
        var order: [TransferID] = []
        var snapshots: [TransferID: TransferSnapshot] = [:]
        var pasts: [TransferID: TransferBar.Past] = [:]
        var total = TotalLine(fileCount: 1)
        /// Sizes of files by the names of the command, where known.
        var byteCounts: [String: Int64] = [:]
        var firstMoved: ContinuousClock.Instant?
        /// The cells of each line on the terminal that is redrawn.
        var shownLines: [Int] = []
        var lastLine: [TransferID: ShownLine] = [:]

        var hasManyFiles: Bool { total.fileCount > 1 }
    }

    fileprivate struct ShownLine {
        let time: ContinuousClock.Instant
        let snapshot: TransferSnapshot

        /// Whether more than the number of bytes has changed.
        func isOutdated(by newer: TransferSnapshot) -> Bool {
            snapshot.state != newer.state || snapshot.errorCode != newer.errorCode
                || snapshot.message != newer.message
        }
    }

    private let mode: Mode
    private let isColored: Bool
    private let began = ContinuousClock.now
    private let state = Mutex(State())

    /// - Parameters:
    ///   - isLogging: Disables bars, which log lines would break.
    ///   - isColored: Whether bars may have colours.
    init(isJSON: Bool, isQuiet: Bool, isLogging: Bool, isColored: Bool) {
        mode =
            isJSON
            ? .json : isQuiet ? .silent : StandardError.isTerminal && !isLogging ? .bars : .lines
        self.isColored = isColored
    }

    /// Sets what the sum of all files counts up to.
    ///
    /// - Parameter byteCounts: Size of each file; nil where it is not known yet.
    func expect(_ names: [String], _ byteCounts: [Int64?]) {
        state.withLock { state in
            for case (let name, let byteCount?) in zip(names, byteCounts) {
                state.byteCounts[name] = byteCount
            }
            state.total.fileCount = byteCounts.count
            state.total.totalByteCount = byteCounts.reduce(0) { sum, next in
                guard let sum, let next else { return nil }
                // Sparse files may be so large that their sum is no number.
                let (total, overflow) = sum.addingReportingOverflow(next)
                return overflow ? nil : total
            }
        }
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
            for id in state.withLock({ $0.polled(Self.maxPolledIdleCount) })
            where !Task.isCancelled {
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
            state.note(snapshot)
            if mode != .bars, !snapshot.state.isFinal || snapshot.replacedBy != nil {
                line(snapshot, &state)
            }
        }
    }

    /// Shows the last state of a finished transfer, then its output and complaint.
    ///
    /// - Parameter ending: Text in place of `done`, for bytes that were there already.
    func finish(
        _ snapshot: TransferSnapshot, ending: String? = nil, output: String?, complaint: String?
    ) {
        state.withLock { state in
            state.order.removeAll { $0 == snapshot.id || $0 == snapshot.replaces }
            state.snapshots[snapshot.id] = nil
            state.pasts[snapshot.id] = nil
            state.total.count(snapshot, isPresent: ending != nil)
            clearBars(&state)
            let bar = TransferBar(snapshot: snapshot, ending: ending)
            switch mode {
            // The sum counts them: after Ctrl-C there may be thousands.
            case .bars where snapshot.isIdle && state.hasManyFiles: break
            case .lines where snapshot.isIdle && state.hasManyFiles: break
            // A complaint contains the same in full.
            case .bars where complaint == nil:
                let cells = StandardError.columnCount - 1
                StandardError.write(
                    Self.unwrapped(bar.text(cells: cells, isColored: isColored) + "\n"))
            case .lines where complaint == nil: StandardError.write(bar.summary + "\n")
            default: break
            }
            show(output: output, complaint: complaint, &state)
        }
    }

    /// Counts a file that is there already; there is no line for it among many.
    func pass(_ byteCount: Int64, output: String) {
        state.withLock { state in
            state.total.presentCount += 1
            state.total.endedByteCount += byteCount
            clearBars(&state)
            show(output: output, complaint: nil, &state)
        }
    }

    /// Shows that a file was refused before it became a transfer.
    ///
    /// - Parameter name: The name that was expected.
    func refuse(_ name: String, output: String?, complaint: String) {
        state.withLock { state in
            state.total.failedCount += 1
            let byteCount = state.byteCounts[name] ?? 0
            state.total.totalByteCount = state.total.totalByteCount.map { max(0, $0 - byteCount) }
            clearBars(&state)
            show(output: output, complaint: complaint, &state)
        }
    }

    /// Shows the sum of all files, if there are several.
    func conclude() {
        guard mode == .bars || mode == .lines else { return }
        state.withLock { state in
            guard state.hasManyFiles else { return }
            clearBars(&state)
            StandardError.write(state.total.sum(after: began.duration(to: .now)) + "\n")
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
        StandardError.write(Self.clear(state.shownLines))
        state.shownLines = []
    }

    /// Redraws the bars: of a single file always, of several only those that move, as many as fit
    /// on the terminal, and the sum below.
    private func redraw(_ state: inout State) {
        let cells = StandardError.columnCount - 1
        let known = state.order.compactMap { state.snapshots[$0] }.filter { !$0.state.isFinal }
        // Also those that wait to try again, with the reason.
        let busy = known.filter {
            $0.state == .uploading || $0.state == .downloading || $0.errorCode != nil
        }
        let shown = state.hasManyFiles ? busy : known
        let now = ContinuousClock.now
        var lines = shown.prefix(max(1, StandardError.rowCount - 3)).map { snapshot in
            TransferBar(snapshot: snapshot, past: state.pasts[snapshot.id], now: now)
                .text(cells: cells, isColored: isColored)
        }
        if state.hasManyFiles, !known.isEmpty {
            let isWarm = state.firstMoved.map { $0.duration(to: now) >= TransferBar.warmUp }
            lines.append(state.total.text(known, isWarm: isWarm ?? false, cells: cells))
        }
        guard !lines.isEmpty || !state.shownLines.isEmpty else { return }
        StandardError.write(
            Self.clear(state.shownLines) + Self.unwrapped(lines.map { $0 + "\n" }.joined()))
        state.shownLines = lines.map { _ in cells }
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
            let bar = TransferBar(snapshot: snapshot, past: state.pasts[snapshot.id])
            StandardError.write(bar.summary + "\n")
        }
    }

    /// Returns the text with wrapping switched off meanwhile (DECAWM): some terminals draw
    /// characters wider than counted.
    private static func unwrapped(_ text: String) -> String { "\u{1B}[?7l\(text)\u{1B}[?7h" }

    /// Returns the text that removes these lines. A terminal that has become narrower since has
    /// wrapped them, so each takes more rows.
    private static func clear(_ lines: [Int]) -> String {
        guard !lines.isEmpty else { return "" }
        let columns = StandardError.columnCount
        let rows = lines.reduce(0) { $0 + max(1, ($1 + columns - 1) / columns) }
        return "\r\u{1B}[\(rows)A\u{1B}[J"
    }
}

extension ProgressDisplay.State {
    /// Returns the transfers whose changes are to be shown: of those that have not begun, only the
    /// first ones.
    fileprivate func polled(_ maxIdleCount: Int) -> [TransferID] {
        var idleCount = 0
        return order.filter { id in
            guard snapshots[id]?.isIdle == true else { return true }
            idleCount += 1
            return idleCount <= maxIdleCount
        }
    }

    /// Notes a snapshot, and whether bytes have moved since the last one.
    fileprivate mutating func note(_ snapshot: TransferSnapshot) {
        let now = ContinuousClock.now
        var past =
            pasts[snapshot.id]
            ?? TransferBar.Past(
                startByteCount: snapshot.bytesTransferred, firstMoved: nil, lastMoved: now)
        let before = snapshots[snapshot.id]?.bytesTransferred ?? snapshot.bytesTransferred
        if snapshot.bytesTransferred > before || (snapshot.bytesPerSecond ?? 0) > 0 {
            past.firstMoved = past.firstMoved ?? now
            past.lastMoved = now
            firstMoved = firstMoved ?? now
        }
        pasts[snapshot.id] = past
        snapshots[snapshot.id] = snapshot
    }
}

extension TransferSnapshot {
    /// Whether the transfer waits for its turn, not for the server.
    fileprivate var isIdle: Bool { state == .queued && failedAttempt == nil }
}

extension TotalLine {
    /// Counts a file that has ended.
    ///
    /// - Parameter isPresent: Whether its bytes were there already.
    fileprivate mutating func count(_ snapshot: TransferSnapshot, isPresent: Bool) {
        // Bytes of a failed file that did not move count in no rate, so it ends as it is.
        let byteCount = snapshot.bytesTransferred
        switch snapshot.state {
        case .completed where isPresent:
            presentCount += 1
            endedByteCount += byteCount
        case .completed:
            completedCount += 1
            completedByteCount += byteCount
            endedByteCount += byteCount
        case .failed, .canceled:
            failedCount += 1
            endedByteCount += byteCount
            totalByteCount = totalByteCount.map {
                max(0, $0 - (snapshot.totalBytes ?? byteCount) + byteCount)
            }
        case .queued, .paused, .uploading, .downloading: break
        }
    }
}

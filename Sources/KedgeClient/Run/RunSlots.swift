/// Slots for running transfers, granted in the order of the requests.
actor RunSlots {
    private var freeCount: Int
    private var nextTicket = 0
    private var waiting: [(ticket: Int, continuation: CheckedContinuation<Bool, Never>)] = []

    init(count: Int) { freeCount = max(1, count) }

    /// Waits for a slot; returns false if the task is canceled first.
    func take() async -> Bool {
        if Task.isCancelled { return false }
        if freeCount > 0 {
            freeCount -= 1
            return true
        }
        let ticket = nextTicket
        nextTicket += 1
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiting.append((ticket, continuation))
                // The cancellation may have come before the ticket was in the list.
                if Task.isCancelled { cancel(ticket) }
            }
        } onCancel: {
            // Ends by itself at once; no caller waits for it.
            Task { await self.cancel(ticket) }
        }
    }

    /// Releases a slot.
    func give() {
        if waiting.isEmpty {
            freeCount += 1
        } else {
            waiting.removeFirst().continuation.resume(returning: true)
        }
    }

    private func cancel(_ ticket: Int) {
        guard let place = waiting.firstIndex(where: { $0.ticket == ticket }) else { return }
        waiting.remove(at: place).continuation.resume(returning: false)
    }
}

import KedgeLocks
import KedgeTransport

/// The thread that runs libcurl for one client, and the queue of commands to it.
package final class CurlLoop: Sendable {
    /// A command to the thread. One about an exchange that is over is ignored.
    enum Command: Sendable {
        case start(TransportRequest, Exchange)
        case resume(Exchange)
        case cancel(Exchange)
        case discardBody(Exchange)
    }

    /// The reason why the thread accepts no more commands.
    private struct StopReason {
        let code: CurlError.Code
        let detail: String

        static let shutdown = StopReason(code: .cancelled, detail: "the client is shut down")
        static let noThread = StopReason(code: .internalError, detail: "no thread available")
        static let noLibrary = StopReason(code: .internalError, detail: "libcurl does not start")
    }

    private struct Inbox {
        var stopReason: StopReason?
        var hasStopped = false
        var commands: [Command] = []
        var waker: MultiHandle.Waker?
        var stopWaiters: [CheckedContinuation<Void, Never>] = []
    }

    private let configuration: CurlClient.Configuration
    private let inbox = Mutex(Inbox())

    package init(configuration: CurlClient.Configuration) {
        self.configuration = configuration
    }

    /// Starts the thread, which keeps this object alive until it ends. Called once.
    func start() {
        let hasStarted = DetachedThread.start { self.run() }
        if !hasStarted { finishStopping(.noThread) }
    }

    /// Queues a command and wakes the thread. After a stop, a start ends its exchange at once; any
    /// other command is dropped.
    func post(_ command: Command) {
        let refusal: StopReason? = inbox.withLock { inbox in
            if let stopReason = inbox.stopReason { return stopReason }
            inbox.commands.append(command)
            // The first command of a batch wakes the thread, which takes the whole batch.
            if inbox.commands.count == 1 { inbox.waker?.wake() }
            return nil
        }
        if let refusal { refuse(command, refusal) }
    }

    /// Makes the thread end all exchanges and then itself. Returns at once.
    func stop() {
        inbox.withLock { inbox in
            guard inbox.stopReason == nil else { return }
            inbox.stopReason = .shutdown
            inbox.waker?.wake()
        }
    }

    /// Waits until the thread has released libcurl.
    func waitUntilStopped() async {
        await withCheckedContinuation { waiter in
            let hasStopped = inbox.withLock { inbox in
                if inbox.hasStopped { return true }
                inbox.stopWaiters.append(waiter)
                return false
            }
            if hasStopped { waiter.resume() }
        }
    }

    private func run() {
        finishStopping(drive())
    }

    /// Runs the transfers until the stop; all of them have ended when it returns.
    private func drive() -> StopReason {
        guard var driver = TransferDriver(configuration: configuration) else { return .noLibrary }
        let waker = driver.waker
        inbox.withLock { $0.waker = waker }
        while let commands = takeCommands() {
            for command in commands { driver.execute(command) }
            driver.drive()
        }
        driver.finishAll(StopReason.shutdown.code, StopReason.shutdown.detail)
        // Under the lock, so that no caller is inside `wake()` when the multi handle is freed.
        inbox.withLock { $0.waker = nil }
        _ = consume driver
        return .shutdown
    }

    /// Removes and returns the queued commands; nil when the thread must stop.
    private func takeCommands() -> [Command]? {
        inbox.withLock { inbox in
            guard inbox.stopReason == nil else { return nil }
            let commands = inbox.commands
            inbox.commands = []
            return commands
        }
    }

    /// Refuses the queued commands and all later ones.
    private func finishStopping(_ reason: StopReason) {
        let (commands, waiters) = inbox.withLock { inbox in
            inbox.stopReason = inbox.stopReason ?? reason
            inbox.hasStopped = true
            let left = (inbox.commands, inbox.stopWaiters)
            inbox.commands = []
            inbox.stopWaiters = []
            return left
        }
        for command in commands { refuse(command, reason) }
        for waiter in waiters { waiter.resume() }
    }

    private func refuse(_ command: Command, _ reason: StopReason) {
        guard case .start(_, let exchange) = command else { return }
        exchange.end(exchange.error(reason.code, reason.detail))
    }
}

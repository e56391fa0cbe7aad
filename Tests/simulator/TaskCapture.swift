import Glibc
import KedgeLocks

/// Moves the tasks of this process from its threads to a scheduler.
///
/// The concurrency library calls a function, when one is set, instead of handing a job to its
/// threads (`swift_task_enqueueGlobal_hook`, made for embedders and used by test libraries alike).
/// The process has one thread, so every enqueued job belongs to the world that runs.
enum TaskCapture {
    private typealias Enqueue = @convention(thin) (UnownedJob) -> Void
    private typealias Hook = @convention(thin) (UnownedJob, Enqueue) -> Void

    private static let current = Mutex<Scheduler?>(nil)

    /// Runs the closure while tasks go to the scheduler.
    static func with<Result>(_ scheduler: Scheduler, _ body: () -> Result) -> Result {
        install()
        current.withLock { $0 = scheduler }
        defer { current.withLock { $0 = nil } }
        return body()
    }

    private static func install() {
        guard let symbol = dlsym(nil, "swift_task_enqueueGlobal_hook") else {
            fatalError("this Swift runtime has no hook for tasks")
        }
        symbol.assumingMemoryBound(to: Hook?.self).pointee = { job, original in
            if let scheduler = TaskCapture.current.withLock({ $0 }) {
                scheduler.enqueue(job)
            } else {
                original(job)
            }
        }
    }
}

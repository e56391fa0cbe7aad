import KedgeModel
import Testing

/// R3, R34, R104–R109: the complete table of states and events.
struct TransferStateTests {
    struct Step: Sendable, CustomTestStringConvertible {
        let state: TransferState
        let event: TransferEvent
        let direction: TransferDirection

        var testDescription: String { "\(state) \(event) (\(direction))" }
    }

    private static let events: [TransferEvent] = [
        .start, .wait, .pause(.user), .pause(.shutdown), .pause(.constraint), .resume, .fail,
        .complete, .cancel, .retry, .restart,
    ]

    private static let steps = TransferState.allCases.flatMap { state in
        events.flatMap { event in
            [TransferDirection.upload, .download].map {
                Step(state: state, event: event, direction: $0)
            }
        }
    }

    /// The legal target of a step; nil for an illegal pair of state and event.
    private static func target(of step: Step) -> TransferState? {
        let running = step.direction == .upload ? TransferState.uploading : .downloading
        let row: [TransferEvent: TransferState] =
            switch step.state {
            case .queued:
                [
                    .start: running, .wait: .queued, .resume: .queued, .fail: .failed,
                    .cancel: .canceled, .retry: .queued, .restart: .queued,
                ]
            case .uploading, .downloading:
                [
                    .wait: .queued, .resume: step.state, .fail: .failed, .complete: .completed,
                    .cancel: .canceled,
                ]
            case .paused:
                [
                    .resume: .queued, .fail: .failed, .cancel: .canceled, .retry: .queued,
                    .restart: .queued,
                ]
            case .failed: [.cancel: .canceled, .retry: .queued, .restart: .queued]
            case .completed: [.restart: .queued]
            case .canceled: [.cancel: .canceled, .retry: .queued, .restart: .queued]
            }
        if case .pause = step.event {
            return [.queued, .uploading, .downloading, .paused].contains(step.state) ? .paused : nil
        }
        return row[step.event]
    }

    @Test(arguments: steps)
    func `every event leads to the state of the table, or throws`(step: Step) throws {
        guard let target = Self.target(of: step) else {
            let error = #expect(throws: IllegalTransition.self) {
                try step.state.applying(step.event, direction: step.direction)
            }
            #expect(error?.state == step.state)
            #expect(error?.event == step.event)
            return
        }
        #expect(try step.state.applying(step.event, direction: step.direction) == target)
    }

    @Test func `a completed transfer is not stopped, failed, retried or completed again`() {
        for event in [TransferEvent.cancel, .pause(.user), .fail, .complete, .start, .retry] {
            #expect(throws: IllegalTransition.self) {
                try TransferState.completed.applying(event, direction: .download)
            }
        }
    }

    @Test func `failed, completed and canceled are the final states`() {
        let final = TransferState.allCases.filter(\.isFinal)
        #expect(final == [.failed, .completed, .canceled])
        #expect(TransferDirection.upload.runningState == .uploading)
        #expect(TransferDirection.download.runningState == .downloading)
    }

    @Test func `the stored words of states and pause reasons are those of the requirements`() {
        #expect(
            TransferState.allCases.map(\.rawValue) == [
                "queued", "uploading", "downloading", "paused", "failed", "completed", "canceled",
            ])
        #expect(
            [PauseReason.user, .shutdown, .constraint, .signInNeeded].map(\.rawValue) == [
                "user", "shutdown", "constraint", "signInNeeded",
            ])
    }
}

import KedgeIdentity
import KedgeLocks
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Blocked owners, and the number of reads of the store.
@Suite(.timeLimit(.minutes(1))) struct OwnerBlocksTests {
    private let store = CountedOwners()
    private let clock = ManualClock()

    private var blocks: OwnerBlocks {
        OwnerBlocks(store: store) { [clock] in clock.now() }
    }

    private static func principal(
        _ owner: String, kind: Principal.Kind = .token, _ scopes: Set<Scope> = [.filesRead]
    ) -> Principal {
        Principal(owner: OwnerID(owner), kind: kind, name: owner, scopes: scopes)
    }

    @Test(arguments: [Principal.Kind.token, .oidc, .proxy, .anonymous])
    func `a blocked owner is refused, however it has proven itself`(
        kind: Principal.Kind
    ) async throws {
        try await store.setBlocked(true, of: OwnerID("alice"))
        let blocks = blocks
        #expect(try await blocks.refuses(Self.principal("alice", kind: kind)))
        #expect(try await !blocks.refuses(Self.principal("bob", kind: kind)))
    }

    @Test func `a link of a blocked owner is refused`() async throws {
        try await store.setBlocked(true, of: OwnerID("alice"))
        let link = Link(
            owner: OwnerID("alice"), grant: .session(LinkedSession(session: .random())),
            expiresAt: clock.now().advanced(by: .seconds(60)))
        #expect(try await blocks.refuses(Principal(link)))
    }

    @Test func `the account on the machine of the service is never refused`() async throws {
        try await store.setBlocked(true, of: OwnerID("alice"))
        #expect(try await !blocks.refuses(Self.principal("alice", kind: .local)))
    }

    @Test func `a principal that acts is refused for either owner, unless it administers`()
        async throws
    {
        let blocks = blocks
        try await store.setBlocked(true, of: OwnerID("alice"))
        let backend = Self.principal("backend", [.actAs])
        let admin = Self.principal("admin", [.actAs, .admin])
        #expect(try await blocks.refuses(try backend.acting(for: OwnerID("alice"))))
        #expect(try await !blocks.refuses(try admin.acting(for: OwnerID("alice"))))
        #expect(try await !blocks.refuses(try backend.acting(for: OwnerID("bob"))))
        try await store.setBlocked(true, of: OwnerID("admin"))
        clock.advance(by: .seconds(10))
        #expect(try await blocks.refuses(try admin.acting(for: OwnerID("alice"))))
    }

    @Test func `an owner is read once in ten seconds`() async throws {
        let blocks = blocks
        let alice = Self.principal("alice")
        for _ in 0..<5 { #expect(try await !blocks.refuses(alice)) }
        #expect(store.readCount == 1)
        try await store.setBlocked(true, of: OwnerID("alice"))
        clock.advance(by: .milliseconds(9999))
        #expect(try await !blocks.refuses(alice))
        clock.advance(by: .milliseconds(1))
        #expect(try await blocks.refuses(alice))
        #expect(store.readCount == 2)
    }

    @Test func `a clock that goes back makes the service read again`() async throws {
        let blocks = blocks
        let alice = Self.principal("alice")
        #expect(try await !blocks.refuses(alice))
        try await store.setBlocked(true, of: OwnerID("alice"))
        clock.advance(by: .seconds(-3600))
        #expect(try await blocks.refuses(alice))
    }

    @Test func `concurrent requests of one owner share a read`() async throws {
        let blocks = blocks
        store.hold()
        let refusals = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 {
                group.addTask { try await blocks.refuses(Self.principal("alice")) }
            }
            try await eventually("a read began") { store.readCount == 1 }
            store.letGo()
            var refusals = 0
            for try await isRefused in group where isRefused { refusals += 1 }
            return refusals
        }
        #expect(refusals == 0)
        #expect(store.readCount == 1)
    }

    @Test func `an owner is read again although another one changed during a read`() async throws {
        let blocks = blocks
        let alice = Self.principal("alice")
        store.hold()
        let first = Task { try await blocks.refuses(alice) }
        try await eventually("a read began") { store.readCount == 1 }
        blocks.forget(OwnerID("bob"))
        store.letGo()
        #expect(try await !first.value)
        try await store.setBlocked(true, of: OwnerID("alice"))
        clock.advance(by: .seconds(10))
        #expect(try await blocks.refuses(alice))
    }

    @Test func `a failing store refuses, and is asked again`() async throws {
        let blocks = blocks
        store.fail()
        await #expect(throws: CountedOwners.Failure.self) {
            _ = try await blocks.refuses(Self.principal("alice"))
        }
        store.heal()
        #expect(try await !blocks.refuses(Self.principal("alice")))
    }
}

/// Owners in memory, with a count of reads and switches for failures and waits.
private final class CountedOwners: OwnerStore {
    struct Failure: Error {}

    private struct State {
        var blocked: Set<OwnerID> = []
        var readCount = 0
        var isHeld = false
        var isFailing = false
    }

    private let state = Mutex(State())

    var readCount: Int { state.withLock { $0.readCount } }

    func hold() { state.withLock { $0.isHeld = true } }
    func letGo() { state.withLock { $0.isHeld = false } }
    func fail() { state.withLock { $0.isFailing = true } }
    func heal() { state.withLock { $0.isFailing = false } }

    func owner(_ id: OwnerID) async throws -> OwnerRecord? {
        let isFailing = state.withLock { state in
            state.readCount += 1
            return state.isFailing
        }
        if isFailing { throw Failure() }
        try await eventually("the store answers") { state.withLock { !$0.isHeld } }
        let isBlocked = state.withLock { $0.blocked.contains(id) }
        return isBlocked ? OwnerRecord(owner: id, isBlocked: true) : nil
    }

    func owners(after: OwnerID?, limit: Int) async throws -> [OwnerRecord] {
        state.withLock { Array($0.blocked.prefix(limit)) }.map {
            OwnerRecord(owner: $0, isBlocked: true)
        }
    }

    func setLimits(_ limits: OwnerLimits, of owner: OwnerID) async throws {}

    func setBlocked(_ isBlocked: Bool, of owner: OwnerID) async throws {
        state.withLock { state in
            if isBlocked {
                state.blocked.insert(owner)
            } else {
                state.blocked.remove(owner)
            }
        }
    }
}

import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

struct WriteAdmissionTests {
    private typealias Decision = WriteAdmission.Decision

    private static func key(_ number: UInt8) -> ShareKey {
        ShareKey(
            owner: .anonymous,
            address: ClientAddress(bytes: [10, 0, 0, number]) ?? .unknown)
    }

    private static func arrival(
        _ number: UInt8, session: SessionID? = nil, isEvictable: Bool = true
    ) -> WriteAdmission.Arrival {
        WriteAdmission.Arrival(key: key(number), session: session, isEvictable: isEvictable)
    }

    /// Places that are all taken by slow bodies of some shares in turn.
    private static func full(
        _ placeCount: Int, shares: UInt8, isEvictable: Bool = true
    ) throws -> WriteAdmission {
        var admission = WriteAdmission(placeCount: placeCount)
        for index in 0..<placeCount {
            let id = try #require(
                admission.arrive(arrival(UInt8(index) % shares), at: .zero).admitted)
            admission.observe(id, .slow(bytesPerSecond: Int64(1000 + index)))
        }
        return admission
    }

    @Test(arguments: [1, 2, 3, 64])
    func `bodies are admitted while places are free, and refused after`(placeCount: Int) {
        var admission = WriteAdmission(placeCount: placeCount)
        for _ in 0..<placeCount {
            let decision = admission.arrive(Self.arrival(1), at: .zero)
            #expect(decision.admitted != nil && decision.evicted.isEmpty)
        }
        #expect(admission.arrive(Self.arrival(1), at: .zero) == .refused(evicting: []))
        #expect(admission.arrive(Self.arrival(2), at: .zero) == .refused(evicting: []))
    }

    @Test(arguments: [1, 2, 10, 64] as [UInt8])
    func `slow bodies keep half of the places while other bodies want one`(shares: UInt8) throws {
        var admission = try Self.full(64, shares: shares)
        var admitted = 0
        for _ in 0..<200 {
            let decision = admission.arrive(Self.arrival(200), at: .seconds(1))
            #expect(decision.evicted.count <= 9)
            for id in decision.evicted { admission.depart(id, isWhole: false) }
            guard let id = decision.admitted else { continue }
            admitted += 1
            // Fast bodies end at once.
            admission.depart(id, isWhole: true)
        }
        #expect(admitted == 200)
        #expect(admission.activeCount == admission.slowPlaceCount)
    }

    @Test func `the slowest bodies of the share with most slow bodies give way first`() throws {
        var admission = WriteAdmission(placeCount: 4)
        var ids: [WriteAdmission.WriterID] = []
        for (number, rate) in [(1, 10), (2, 500), (2, 100), (2, 300)] as [(UInt8, Int64)] {
            let id = try #require(
                admission.arrive(Self.arrival(number), at: .zero).admitted)
            admission.observe(id, .slow(bytesPerSecond: rate))
            ids.append(id)
        }
        let decision = admission.arrive(Self.arrival(3), at: .zero)
        #expect(decision.evicted == [ids[2], ids[3]])
        #expect(decision.admitted != nil)
    }

    /// Otherwise they would replace each other for ever, and none would finish.
    @Test func `slow bodies of shares that have their fair part do not replace each other`() throws
    {
        var admission = try Self.full(64, shares: 8)
        var young: [(id: WriteAdmission.WriterID, since: Duration)] = []
        var evicted = 0
        for round in 0..<1000 {
            let now = Duration.milliseconds(10 * round)
            let decision = admission.arrive(Self.arrival(UInt8(round % 8)), at: now)
            evicted += decision.evicted.count
            for id in decision.evicted { admission.depart(id, isWhole: false) }
            if let id = decision.admitted { young.append((id, now)) }
            // A body is known to be slow only after a while.
            while let first = young.first, now - first.since >= .seconds(2) {
                admission.observe(first.id, .slow(bytesPerSecond: 5000))
                young.removeFirst()
            }
        }
        // Half of the places give way at once, then the few that are tried, five times in ten
        // seconds.
        #expect(evicted <= 32 + 5 * 8)
        #expect(admission.activeCount <= 64)
    }

    @Test func `an upload that was fast is admitted beside slow ones of its share`() throws {
        let session = SessionID.random()
        var admission = WriteAdmission(placeCount: 8)
        let first = try #require(
            admission.arrive(Self.arrival(1, session: session), at: .zero).admitted)
        admission.depart(first, isWhole: true)
        for _ in 0..<8 {
            let id = try #require(admission.arrive(Self.arrival(1), at: .zero).admitted)
            admission.observe(id, .slow(bytesPerSecond: 1))
        }
        for _ in 0..<50 {
            let decision = admission.arrive(
                Self.arrival(1, session: session), at: .seconds(1))
            for id in decision.evicted { admission.depart(id, isWhole: false) }
            admission.depart(try #require(decision.admitted), isWhole: true)
        }
    }

    @Test func `bodies that count as a whole are not stopped and leave a quarter of the places`()
        throws
    {
        var admission = WriteAdmission(placeCount: 64)
        var admitted = 0
        for number in 0..<200 {
            let decision = admission.arrive(
                Self.arrival(UInt8(number), isEvictable: false), at: .zero)
            guard let id = decision.admitted else { continue }
            admitted += 1
            admission.observe(id, .slow(bytesPerSecond: 1))
        }
        #expect(admitted == admission.wholePlaceCount)
        for _ in 0..<16 {
            let decision = admission.arrive(Self.arrival(220), at: .zero)
            #expect(decision.admitted != nil && decision.evicted.isEmpty)
        }
        #expect(admission.arrive(Self.arrival(221), at: .zero) == .refused(evicting: []))
    }

    @Test func `one share has a bounded number of slow bodies that count as a whole`() throws {
        var admission = WriteAdmission(placeCount: 64)
        for _ in 0..<200 {
            let decision = admission.arrive(Self.arrival(1, isEvictable: false), at: .zero)
            if let id = decision.admitted { admission.observe(id, .slow(bytesPerSecond: 1)) }
        }
        #expect(admission.activeCount == 32)
        #expect(admission.arrive(Self.arrival(2, isEvictable: false), at: .zero).admitted != nil)
    }

    @Test func `one share cannot take all places for whole bodies before they are judged`() throws {
        var admission = WriteAdmission(placeCount: 64)
        let ids = (0..<100).compactMap { _ in
            admission.arrive(Self.arrival(1, isEvictable: false), at: .zero).admitted
        }
        #expect(ids.count == 32)
        #expect(admission.arrive(Self.arrival(2, isEvictable: false), at: .zero).admitted != nil)
        // Bodies that come quickly do not count.
        for id in ids { admission.observe(id, .fast) }
        #expect(admission.arrive(Self.arrival(1, isEvictable: false), at: .zero).admitted != nil)
    }

    /// A share that found no place is not overtaken for ever by one that has many quick bodies.
    @Test func `a share with more than its part leaves the next place to one that waits`() throws {
        var admission = WriteAdmission(placeCount: 4)
        let ids = try (0..<4).map { _ in
            try #require(admission.arrive(Self.arrival(1), at: .zero).admitted)
        }
        #expect(admission.arrive(Self.arrival(2), at: .zero).admitted == nil)
        admission.depart(ids[0], isWhole: true)
        #expect(admission.arrive(Self.arrival(1), at: .seconds(1)).admitted == nil)
        #expect(admission.arrive(Self.arrival(2), at: .seconds(1)).admitted != nil)
        admission.depart(ids[1], isWhole: true)
        #expect(admission.arrive(Self.arrival(1), at: .seconds(1)).admitted != nil)
    }

    @Test func `a place is not kept free for a client that does not come back`() throws {
        var admission = WriteAdmission(placeCount: 1)
        let id = try #require(admission.arrive(Self.arrival(1), at: .zero).admitted)
        #expect(admission.arrive(Self.arrival(2), at: .zero).admitted == nil)
        admission.depart(id, isWhole: true)
        #expect(admission.arrive(Self.arrival(1), at: .seconds(3)).admitted != nil)
    }

    /// Any order of events, at any size.
    @Test(arguments: [1, 2, 3, 4, 7, 64], 0..<20 as Range<UInt64>)
    func `the limits of admission hold after every event`(placeCount: Int, seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        var admission = WriteAdmission(placeCount: placeCount)
        let sessions = (0..<2000).map { _ in SessionID.random(using: &generator) }
        var isEvictable: [WriteAdmission.WriterID: Bool] = [:]
        var slow: Set<WriteAdmission.WriterID> = []
        var leaving: Set<WriteAdmission.WriterID> = []
        var time = Duration.zero
        for _ in 0..<4000 {
            time += .milliseconds(Int.random(in: 0...200, using: &generator))
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<5:
                let hadRoom = admission.activeCount < placeCount
                let arrival = WriteAdmission.Arrival(
                    key: Self.key(UInt8.random(in: 0..<200, using: &generator)),
                    session: Bool.random(using: &generator)
                        ? sessions.randomElement(using: &generator) : nil,
                    isEvictable: Int.random(in: 0..<3, using: &generator) > 0)
                let decision = admission.arrive(arrival, at: time)
                for id in decision.evicted {
                    #expect(isEvictable[id] == true && slow.contains(id))
                    #expect(leaving.insert(id).inserted)
                }
                if let id = decision.admitted {
                    isEvictable[id] = arrival.isEvictable
                    #expect(hadRoom || !decision.evicted.isEmpty)
                }
            case 5..<8:
                guard let id = isEvictable.keys.sorted().randomElement(using: &generator) else {
                    continue
                }
                let isSlow = Bool.random(using: &generator)
                admission.observe(id, isSlow ? .slow(bytesPerSecond: 10) : .fast)
                if leaving.contains(id) { continue }
                if isSlow { slow.insert(id) } else { slow.remove(id) }
            default:
                guard let id = isEvictable.keys.sorted().randomElement(using: &generator) else {
                    continue
                }
                admission.depart(id, isWhole: Bool.random(using: &generator))
                isEvictable[id] = nil
                slow.remove(id)
                leaving.remove(id)
            }
            #expect(admission.activeCount == isEvictable.count - leaving.count)
            #expect(admission.activeCount <= placeCount)
            #expect(isEvictable.values.count { !$0 } <= admission.wholePlaceCount)
            #expect(leaving.count <= max(1, placeCount / 2))
            #expect(admission.tableCount <= 2 * placeCount + 64 + 1024)
        }
    }
}

extension WriteAdmission.Decision {
    fileprivate var admitted: WriteAdmission.WriterID? {
        guard case .admitted(let id, _) = self else { return nil }
        return id
    }
}

internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    static let files = [
        Case("a file is absent for another owner and under another id") { store in
            let file = try await store.makeFile()
            #expect(try await store.file(file.id, owner: Sample.stranger) == nil)
            #expect(try await store.file(.random(), owner: Sample.owner) == nil)
        },
        Case("files are listed newest first, page by page, without other owners'") { store in
            var made: [FileRecord] = []
            // Three files share a time, so that the order within one time is tested, too.
            for seconds: Int64 in [1, 2, 2, 2, 3] {
                made.append(try await store.makeFile(at: seconds))
            }
            _ = try await store.makeFile(owner: Sample.stranger)
            var listed: [FileRecord] = []
            var pageCount = 0
            while true {
                let cursor = listed.last.map { FileCursor(createdAt: $0.createdAt, id: $0.id) }
                let page = try await store.files(of: Sample.owner, after: cursor, limit: 2)
                if page.isEmpty { break }
                listed += page
                pageCount += 1
            }
            #expect(pageCount == 3)
            #expect(Set(listed) == Set(made))
            #expect(listed.count == made.count)
            #expect(listed.map(\.createdAt) == listed.map(\.createdAt).sorted(by: >))
        },
        Case("files under a path are listed by its whole components, by path, newest first") {
            store in
            // In the order of their bytes; "é" once composed and once decomposed.
            let paths = [
                "a", "a", "a/b", "a/b c", "a/b/c", "a/b/e\u{301}", "a/b/\u{e9}", "a/b0", "a-b",
                "a0",
                "\u{10FFFF}\u{10FFFF}",
            ]
            for (position, path) in paths.enumerated() {
                _ = try await store.makeFile(path: path, at: Int64(position))
            }
            _ = try await store.makeFile(path: "a/b", owner: Sample.stranger)
            _ = try await store.makeFile()
            let deleted = try await store.makeFile(path: "a/b/d")
            try await store.deleteFile(deleted.id, owner: Sample.owner, at: Sample.time(20))
            for (prefix, expected) in [
                ("", paths), ("a/b", ["a/b", "a/b/c", "a/b/e\u{301}", "a/b/\u{e9}"]),
                ("a/b/", ["a/b", "a/b/c", "a/b/e\u{301}", "a/b/\u{e9}"]), ("a/b/c", ["a/b/c"]),
                ("a/", paths.filter { $0 == "a" || $0.hasPrefix("a/") }), ("a/b/d", []), ("b", []),
            ] {
                var listed: [FileRecord] = []
                while true {
                    let page = try await store.files(
                        of: Sample.owner, under: PathPrefix(prefix),
                        after: listed.last.map { FileCursor($0) }, limit: 2)
                    if page.isEmpty { break }
                    listed += page
                }
                let found = listed.map { Array(($0.path ?? "").utf8) }
                let sorted = expected.map { Array($0.utf8) }
                    .sorted { $0.lexicographicallyPrecedes($1) }
                #expect(found == sorted, "\(prefix)")
            }
            let newest = try await store.files(
                of: Sample.owner, under: PathPrefix("a"), after: nil, limit: 2)
            #expect(newest.map(\.createdAt) == [Sample.time(1), Sample.time(0)])
        },
        Case("a file has the digests of its chunks in order") { store in
            let file = try await store.makeFile()
            #expect(
                try await store.chunkDigests(of: file)
                    == (0..<3).map { Sample.chunk($0).digest })
        },
        Case("a deleted file answers as deleted and is not listed") { store in
            let file = try await store.makeFile()
            try await store.deleteFile(file.id, owner: file.owner, at: Sample.time(20))
            try await store.deleteFile(file.id, owner: file.owner, at: Sample.time(30))
            let deleted = try #require(try await store.file(file.id, owner: file.owner))
            #expect(deleted.deletedAt == Sample.time(20))
            #expect(try await store.files(of: file.owner, after: nil, limit: 9) == [])
        },
        Case("only its owner deletes a file") { store in
            let file = try await store.makeFile()
            await #expect(throws: MetadataError.notFound) {
                try await store.deleteFile(file.id, owner: Sample.stranger, at: Sample.time(20))
            }
            await #expect(throws: MetadataError.notFound) {
                try await store.deleteFile(.random(), owner: file.owner, at: Sample.time(20))
            }
            #expect(try await store.file(file.id, owner: file.owner)?.deletedAt == nil)
        },
    ]
}

import Glibc
import KedgeEngine
import KedgeModel
import KedgeTesting

/// The troubles of a world that occur by themselves, each kind in its own task.
struct Trouble: Sendable {
    let world: World
    let server: ServerMachine
    let client: ClientMachine

    /// Starts the troubles, which end when the weather calms down.
    func begin() {
        repeating(\.serverStops) { [self] in
            let stops: [ServerMachine.Stop] =
                world.weather.losesPower ? ServerMachine.Stop.allCases : [.drain, .kill]
            await server.stop(stops[world.draw(0...stops.count - 1)])
            await world.wait(world.draw(around: .seconds(3)))
            await server.start()
        }
        repeating(\.clientStops) { [self] in
            client.stop(losingPower: world.weather.losesPower && world.draw(0...1) == 0)
            await world.wait(world.draw(around: .seconds(3)))
            client.start()
        }
        repeating(\.serverDiskFaults) { [self] in await spoil(server.process?.disk) }
        repeating(\.clientDiskFaults) { [self] in await spoil(client.disk) }
        repeating(\.databaseFaults) { [self] in
            guard let metadata = server.process?.metadata else { return }
            metadata.fail(after: world.draw(0...5), world.draw(0...1) == 0 ? .before : .after)
            world.count { $0.diskFaults += 1 }
            await world.wait(.seconds(1))
            metadata.heal()
        }
        repeating(\.jumps) { [self] in
            // Long enough for sessions to expire, with or without their grace.
            world.note("days go by")
            world.clock.jump(by: .seconds(3600 * [100, 180, 220][world.draw(0...2)]))
            // A sweep may fail in bad weather; the next one repeats it.
            try? await server.process?.engine.sweep()
        }
    }

    /// Starts the sweeps, which are no trouble and go on in good weather.
    func beginMaintenance() {
        // The task ends with its world.
        Task.detached { [self] in
            while true {
                try await world.scheduler.sleep(for: world.draw(around: .seconds(20)))
                // A sweep may fail in bad weather; the next one repeats it.
                try? await server.process?.engine.sweep()
            }
        }
    }

    private func repeating(
        _ kind: any KeyPath<Weather, Duration?> & Sendable,
        _ event: @escaping @Sendable () async -> Void
    ) {
        guard world.weather[keyPath: kind] != nil else { return }
        // The task ends when the weather has calmed down.
        Task.detached { [self] in
            while let mean = world.weather[keyPath: kind] {
                try await world.scheduler.sleep(for: world.draw(around: mean))
                if world.weather[keyPath: kind] != nil { await event() }
            }
        }
    }

    /// Fails one call of a disk, or all calls for a while.
    private func spoil(_ disk: SimulatedDisk?) async {
        guard let disk else { return }
        let isFull = world.weather.fillsDisks && world.draw(0...1) == 0
        disk.plan(
            .init(
                after: world.draw(0...30), of: isFull ? .write : nil, with: isFull ? ENOSPC : EIO,
                isLasting: isFull))
        world.count { $0.diskFaults += 1 }
        await world.wait(world.draw(around: .seconds(4)))
        disk.plan(nil)
    }
}

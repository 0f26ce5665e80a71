"""The policies of Envoy as a simulation sees them: which replica gets the next request."""

import heapq
import random


class RoundRobin:
    """One after the other."""

    is_told = False

    def __init__(self, count, chance):
        self.count, self.next = count, chance.randrange(count)

    def choose(self, now, replicas):
        self.next = (self.next + 1) % self.count
        return self.next


class LeastRequest:
    """Of two by chance the one with fewer requests in progress, which the proxy counts itself."""

    is_told = False

    def __init__(self, count, chance):
        self.count, self.chance = count, chance

    def choose(self, now, replicas):
        first, second = int(self.chance.random() * self.count), int(self.chance.random() * self.count)
        return first if replicas[first].in_progress(now) <= replicas[second].in_progress(now) else second


class ByLoad:
    """Weights from reports: requests a second by load. A replica without a report gets the average of the others."""

    is_told = True

    def __init__(self, count, chance):
        self.count, self.chance = count, chance
        self.weights = [None] * count
        self.deadlines = []
        self.schedule()

    def report(self, replica, rate, load):
        """A report has come; it counts from the next `schedule` on."""
        if rate > 0:
            self.weights[replica] = rate / max(load, 0.001)

    def schedule(self):
        known = [weight for weight in self.weights if weight is not None]
        average = sum(known) / len(known) if known else 1.0
        self.steps = [1 / (weight or average) for weight in self.weights]
        self.deadlines = [(self.chance.random() * step, replica) for replica, step in enumerate(self.steps)]
        heapq.heapify(self.deadlines)

    def choose(self, now, replicas):
        deadline, replica = self.deadlines[0]
        heapq.heapreplace(self.deadlines, (deadline + self.steps[replica], replica))
        return replica


POLICIES = {"round robin": RoundRobin, "least request": LeastRequest, "by load": ByLoad}


def chance_of(seed):
    return random.Random(seed)

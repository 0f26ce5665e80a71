class SomeOtherModel:
    def execute(self, requests):
        return []

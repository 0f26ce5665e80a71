class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        raise ValueError("cannot complete")

    def execute(self, requests):
        return []

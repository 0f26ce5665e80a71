"""pb_utils.ModelConfig: the configuration that `auto_complete_config` completes."""

import copy
import json


class ModelConfig:
    """Inputs, outputs, batch size, dynamic batching and the transaction policy may be set, unless the configuration
    has another value already: ValueError then."""

    def __init__(self, model_config):
        self._model_config = json.loads(model_config) if isinstance(model_config, str) else copy.deepcopy(model_config)

    def as_dict(self):
        return self._model_config

    def set_max_batch_size(self, max_batch_size):
        config = self._model_config
        present = config.get("max_batch_size", 0)
        if present > max_batch_size:
            raise ValueError(
                "configuration specified max_batch_size %s, but in auto-complete-config function for model '%s' "
                "specified max_batch_size %s" % (present, self._name(), max_batch_size)
            )
        config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self):
        for scheduler in ("sequence_batching", "ensemble_scheduling"):
            if scheduler in self._model_config:
                raise ValueError(
                    "Configuration specified scheduling_choice as '%s', but auto-complete-config function for model "
                    "'%s' tries to set scheduling_choice as 'dynamic_batching'" % (scheduler, self._name())
                )
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input):
        allowed = "'name', 'data_type', 'dims' and 'optional'"
        self._check_tensor("input", input, ("name", "data_type", "dims", "optional"), allowed)
        self._merge("input", input)

    def add_output(self, output):
        self._check_tensor("output", output, ("name", "data_type", "dims"), "'name', 'data_type' and 'dims'")
        self._merge("output", output)

    def set_model_transaction_policy(self, transaction_policy_dict):
        if any(key != "decoupled" for key in transaction_policy_dict):
            raise ValueError(
                "model transaction property in auto-complete-config function for model '%s' contains property other "
                "than 'decoupled'." % self._name()
            )
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        wanted = transaction_policy_dict["decoupled"]
        if policy.get("decoupled", wanted) != wanted:
            raise ValueError(
                "trying to change decoupled property in auto-complete-config for model '%s', which is already set to "
                "'%s'." % (self._name(), policy["decoupled"])
            )
        policy["decoupled"] = wanted

    def _name(self):
        return self._model_config.get("name", "")

    def _check_tensor(self, kind, tensor, properties, allowed):
        where = "in auto-complete-config function for model '%s'" % self._name()
        if any(key not in properties for key in tensor):
            named = "%s '%s' %s" % (kind, tensor["name"], where)
            raise ValueError("%s contains property other than %s." % (named, allowed))
        if "name" not in tensor:
            raise ValueError("%s %s is missing 'name' property." % (kind, where))
        for key in ("data_type", "dims"):
            if key not in tensor:
                raise ValueError("%s '%s' %s is missing '%s' property." % (kind, tensor["name"], where, key))

    def _merge(self, kind, tensor):
        """Completes the tensor of the same name, or adds the tensor."""
        tensors = self._model_config.setdefault(kind, [])
        for present in tensors:
            if present["name"] == tensor["name"]:
                self._check_same(kind, present, tensor)
                present.update(tensor)
                return
        tensors.append(tensor)

    def _check_same(self, kind, present, tensor):
        data_type = present.get("data_type", "TYPE_INVALID")
        if data_type not in ("TYPE_INVALID", tensor["data_type"]):
            raise ValueError(
                "unable to load model '%s', configuration expects datatype %s for %s '%s', model provides %s"
                % (self._name(), data_type, kind, tensor["name"], tensor["data_type"])
            )
        for key in ("dims", "optional"):
            if key not in tensor or key not in present or (key == "dims" and not present[key]):
                continue
            if present[key] != tensor[key]:
                raise ValueError(
                    "model '%s', tensor '%s': the model expects %s %s but the model configuration specifies %s %s"
                    % (self._name(), tensor["name"], key, tensor[key], key, present[key])
                )


ModelConfig.__module__ = "triton_python_backend_utils"

-- All jobs of Kubeflow's training operator, kubeflow.org/v1 (MPIJob: also v2beta1).
local hs = {status = "Progressing", message = "Waiting for its pods"}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    -- A condition that was true once stays in the list as false: only those that hold count.
    if condition.status == "True" then
      local said = condition.message
      if said == nil or said == "" then
        said = condition.reason or condition.type
      end
      if condition.type == "Failed" then
        return {status = "Degraded", message = said}
      elseif condition.type == "Succeeded" then
        return {status = "Healthy", message = said}
      elseif condition.type == "Suspended" then
        hs = {status = "Suspended", message = said}
      elseif condition.type == "Running" and hs.status ~= "Suspended" then
        hs = {status = "Progressing", message = said}
      end
    end
  end
end
return hs

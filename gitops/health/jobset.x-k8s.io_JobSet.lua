-- JobSet, jobset.x-k8s.io/v1alpha2: the terminal state, or else the conditions.
local hs = {status = "Progressing", message = "Running"}
if obj.status ~= nil and obj.status.terminalState == "Completed" then
  return {status = "Healthy", message = "Completed"}
end
if obj.status ~= nil and obj.status.terminalState == "Failed" then
  hs = {status = "Degraded", message = "Failed"}
end
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
      elseif condition.type == "Completed" then
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
